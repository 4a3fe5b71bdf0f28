#include "base/error.h"

#include <gtest/gtest.h>

#include "base/checked.h"

namespace wisp {
namespace {

TEST(Error, ContextGoesInFront) {
  try {
    with_context("file.gguf", [] { fail("tensor '{}': bad", "x"); });
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "file.gguf: tensor 'x': bad");
  }
}

TEST(Error, EnsureThrowsLogicError) { EXPECT_THROW(ensure(false, "x"), std::logic_error); }

TEST(Checked, OverflowIsAnError) {
  EXPECT_EQ(checked_mul(6, 7, "n"), 42U);
  EXPECT_THROW(checked_mul(uint64_t{1} << 63, 2, "n"), Error);
  EXPECT_THROW(checked_add(~uint64_t{0}, 1, "n"), Error);
  EXPECT_THROW(checked_cast<uint32_t>(uint64_t{1} << 32, "n"), Error);
  EXPECT_THROW(checked_cast<uint32_t>(-1, "n"), Error);
  EXPECT_EQ(round_up(65, 64), 128U);
}

}  // namespace
}  // namespace wisp
