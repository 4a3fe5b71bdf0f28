#include "base/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace wisp {
namespace {

TEST(ThreadPool, EveryIndexOnce) {
  for (const size_t threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (const size_t count : {0, 1, 7, 1000}) {
      std::vector<std::atomic<int>> hits(count);
      pool.parallel_for(count, 3, [&](size_t begin, size_t end, size_t worker) {
        ASSERT_LT(worker, threads);
        for (size_t i = begin; i < end; ++i) ++hits[i];
      });
      for (const auto& hit : hits) EXPECT_EQ(hit, 1);
    }
  }
}

TEST(ThreadPool, ExceptionsReachTheCallerAndThePoolLives) {
  ThreadPool pool(3);
  EXPECT_THROW(
      pool.parallel_for(100, 1, [](size_t, size_t, size_t) { throw std::runtime_error("x"); }),
      std::runtime_error);
  std::atomic<int> sum = 0;
  pool.parallel_for(
      100, 1, [&](size_t begin, size_t end, size_t) { sum += static_cast<int>(end - begin); });
  EXPECT_EQ(sum, 100);
}

}  // namespace
}  // namespace wisp
