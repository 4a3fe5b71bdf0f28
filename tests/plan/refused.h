// Plans that the verifier has to refuse.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "plan/plan.h"

namespace wisp::plan {

// What `spoil` makes of the plan and resources is refused, with a message that holds `message`.
inline void expect_refused(std::string_view message,
                           const std::function<void(Plan&, Resources&)>& spoil, Plan plan,
                           Resources resources) {
  spoil(plan, resources);
  try {
    verify(plan, resources);
    ADD_FAILURE() << message << ": accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
  }
}

}  // namespace wisp::plan
