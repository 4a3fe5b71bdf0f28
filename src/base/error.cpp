#include "base/error.h"

namespace wisp {

void Error::rethrow_in(std::string_view context) const {
  throw Error(fmt::format("{}: {}", context, what()));
}

void fail_promise(std::string_view what) {
  throw std::logic_error("internal error: " + std::string(what));
}

}  // namespace wisp
