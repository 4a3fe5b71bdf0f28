#include "base/threads.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
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

// Some tens to hundreds of microseconds: the gap between two ops of a step, or between two steps.
constexpr int kSpins = 10000;
constexpr int kSpinsBetweenYields = 512;  // lets others run when there are too few processors

// The ticket of the current call: its number above, its next piece below. Pieces are taken by
// compare-and-swap, so that a worker which comes late can never take a piece of another call.
constexpr int kPieceBits = 24;
constexpr uint64_t kPieceMask = (uint64_t{1} << kPieceBits) - 1;

uint64_t call_of(uint64_t ticket) { return ticket >> kPieceBits; }
uint64_t piece_of(uint64_t ticket) { return ticket & kPieceMask; }

}  // namespace

struct ThreadPool::State {
  using Body = std::function<void(size_t, size_t, size_t)>;

  std::vector<std::thread> workers;
  std::atomic<uint64_t> ticket{kPieceMask};  // all ones below: nothing to take
  std::atomic<uint64_t> done{0};             // pieces of the current call that have ended
  std::atomic<bool> stop{false};
  std::atomic<bool> failed{false};
  // The current call. They change only while nothing can be taken: whoever sees a new value (all
  // are released and acquired) sees the closed ticket too, so its compare-and-swap fails.
  std::atomic<size_t> count{0};
  std::atomic<size_t> grain{1};
  std::atomic<size_t> pieces{0};
  std::atomic<const Body*> body{nullptr};

  std::mutex mutex;  // guards error, and the sleep of workers
  std::condition_variable wake;
  std::atomic<int> sleepers{0};
  std::exception_ptr error;

  // Takes and runs pieces of the call until none is left. Returns at once when the call is over.
  void take_pieces(uint64_t call, size_t worker) {
    uint64_t seen = ticket.load(std::memory_order_acquire);
    for (;;) {
      const size_t total = pieces.load(std::memory_order_acquire);
      const size_t step = grain.load(std::memory_order_acquire);
      const size_t end = count.load(std::memory_order_acquire);
      const Body* work = body.load(std::memory_order_acquire);
      if (call_of(seen) != call || piece_of(seen) >= total) return;
      // Success proves that the ticket stood still, and with it what was read since.
      if (!ticket.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel,
                                        std::memory_order_acquire)) {
        continue;
      }
      const size_t begin = piece_of(seen) * step;
      run_piece(*work, begin, std::min(end, begin + step), worker);
      done.fetch_add(1, std::memory_order_release);
      seen = ticket.load(std::memory_order_acquire);
    }
  }

  void run_piece(const Body& work, size_t begin, size_t end, size_t worker) {
    if (failed.load(std::memory_order_relaxed)) return;
    try {
      work(begin, end, worker);
    } catch (...) {
      failed.store(true, std::memory_order_relaxed);
      const std::scoped_lock lock(mutex);
      if (!error) error = std::current_exception();
    }
  }

  void run_worker(size_t worker) {
    uint64_t last = 0;
    const auto idle = [&] { return call_of(ticket.load()) == last && !stop.load(); };
    for (;;) {
      for (int spin = 1; spin <= kSpins && idle(); ++spin) {
        if (spin % kSpinsBetweenYields == 0) {
          std::this_thread::yield();
        } else {
          cpu_relax();
        }
      }
      if (idle()) {
        std::unique_lock lock(mutex);
        ++sleepers;
        wake.wait(lock, [&] { return !idle(); });
        --sleepers;
      }
      if (stop.load()) return;
      last = call_of(ticket.load());
      take_pieces(last, worker);
    }
  }
};

ThreadPool::ThreadPool(size_t threads) : state_(std::make_unique<State>()) {
  if (threads == 0) threads = available_processors();
  for (size_t i = 1; i < threads; ++i) {
    state_->workers.emplace_back([state = state_.get(), i] { state->run_worker(i); });
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
  grain = std::max({size_t{1}, grain, static_cast<size_t>(count / kPieceMask + 1)});
  State& s = *state_;
  if (s.workers.empty() || count <= grain) {
    body(0, count, 0);
    return;
  }
  const size_t pieces = (count + grain - 1) / grain;
  // The ticket of a finished call cannot be taken from, but `pieces` may grow under a late worker's
  // eyes: close it first.
  const uint64_t call = call_of(s.ticket.load(std::memory_order_relaxed)) + 1;
  s.ticket.store(call << kPieceBits | kPieceMask);
  s.count.store(count, std::memory_order_release);
  s.grain.store(grain, std::memory_order_release);
  s.pieces.store(pieces, std::memory_order_release);
  s.body.store(&body, std::memory_order_release);
  s.done.store(0, std::memory_order_relaxed);
  s.failed.store(false, std::memory_order_relaxed);
  s.ticket.store((call + 1) << kPieceBits);
  if (s.sleepers.load() > 0) {
    const std::scoped_lock lock(s.mutex);
    s.wake.notify_all();
  }
  s.take_pieces(call + 1, 0);
  // Only pieces that were taken are waited for, not workers that never came.
  for (int spin = 0; s.done.load(std::memory_order_acquire) != pieces; ++spin) {
    if (spin < kSpins) {
      cpu_relax();
    } else {
      std::this_thread::yield();
    }
  }
  if (s.failed.load(std::memory_order_relaxed)) {
    const std::scoped_lock lock(s.mutex);
    std::rethrow_exception(std::exchange(s.error, nullptr));
  }
}

}  // namespace wisp
