// std::visit with one lambda for each alternative.
#pragma once

namespace wisp {

template <typename... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;  // Clang 14 does not deduce it

}  // namespace wisp
