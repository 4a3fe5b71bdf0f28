#include "base/threads.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace wisp {
namespace {

size_t available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    return std::max(1, CPU_COUNT(&set));
  }
  return std::max(1U, std::thread::hardware_concurrency());
}

void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

constexpr int kSpins = 20000;  // some tens of microseconds: the gap between two ops of a step

}  // namespace

struct ThreadPool::State {
  std::vector<std::thread> workers;
  std::mutex mutex;
  std::condition_variable wake;
  std::atomic<uint64_t> generation{0};  // counts the calls of parallel_for
  std::atomic<bool> stop{false};
  std::atomic<size_t> next{0};     // first index not yet taken
  std::atomic<size_t> running{0};  // workers still inside the current call
  size_t count = 0;
  size_t grain = 1;
  const std::function<void(size_t, size_t, size_t)>* body = nullptr;
  std::exception_ptr error;

  void take_pieces(size_t worker) {
    try {
      for (;;) {
        const size_t begin = next.fetch_add(grain, std::memory_order_relaxed);
        if (begin >= count) return;
        (*body)(begin, std::min(count, begin + grain), worker);
      }
    } catch (...) {
      next.store(count, std::memory_order_relaxed);
      const std::scoped_lock lock(mutex);
      if (!error) error = std::current_exception();
    }
  }

  void work(size_t worker) {
    uint64_t seen = 0;
    for (;;) {
      for (int spin = 0; spin < kSpins && generation.load(std::memory_order_acquire) == seen &&
                         !stop.load(std::memory_order_relaxed);
           ++spin) {
        cpu_relax();
      }
      if (generation.load(std::memory_order_acquire) == seen) {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return stop.load() || generation.load() != seen; });
      }
      if (stop.load()) return;
      seen = generation.load(std::memory_order_acquire);
      take_pieces(worker);
      running.fetch_sub(1, std::memory_order_release);
    }
  }
};

ThreadPool::ThreadPool(size_t threads) : state_(std::make_unique<State>()) {
  if (threads == 0) threads = available_processors();
  for (size_t i = 1; i < threads; ++i) {
    state_->workers.emplace_back([state = state_.get(), i] { state->work(i); });
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->stop = true;
  }
  state_->wake.notify_all();
  for (auto& worker : state_->workers) worker.join();
}

size_t ThreadPool::size() const { return state_->workers.size() + 1; }

void ThreadPool::parallel_for(size_t count, size_t grain,
                              const std::function<void(size_t, size_t, size_t)>& body) {
  if (count == 0) return;
  grain = std::max<size_t>(1, grain);
  State& s = *state_;
  if (s.workers.empty() || count <= grain) {
    body(0, count, 0);
    return;
  }
  s.count = count;
  s.grain = grain;
  s.body = &body;
  s.error = nullptr;
  s.next.store(0, std::memory_order_relaxed);
  s.running.store(s.workers.size(), std::memory_order_relaxed);
  {
    const std::scoped_lock lock(s.mutex);
    s.generation.fetch_add(1, std::memory_order_release);
  }
  s.wake.notify_all();
  s.take_pieces(0);
  for (int spin = 0; s.running.load(std::memory_order_acquire) != 0; ++spin) {
    if (spin < kSpins) {
      cpu_relax();
    } else {
      std::this_thread::yield();
    }
  }
  if (s.error) std::rethrow_exception(s.error);
}

}  // namespace wisp
