#include "base/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
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

// Many short calls of changing size: a worker that comes late must not take from the next call.
TEST(ThreadPool, CallsInQuickSuccessionStayApart) {
  ThreadPool pool(4);
  for (size_t call = 0; call < 20000; ++call) {
    const size_t count = 2 + call % 13;
    std::vector<int> hits(count, 0);
    pool.parallel_for(count, 1 + call % 2, [&](size_t begin, size_t end, size_t) {
      for (size_t i = begin; i < end; ++i) ++hits[i];
    });
    for (const int hit : hits) ASSERT_EQ(hit, 1) << call;
  }
}

TEST(ThreadPool, SleepingWorkersWake) {
  ThreadPool pool(2);
  for (int call = 0; call < 3; ++call) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    std::atomic<bool> other = false;
    // The caller's first piece lasts until the worker has come.
    pool.parallel_for(2, 1, [&](size_t, size_t, size_t worker) {
      if (worker != 0) other = true;
      while (worker == 0 && !other) std::this_thread::yield();
    });
    EXPECT_TRUE(other);
  }
}

}  // namespace
}  // namespace wisp
