// A fixed pool of threads that splits a range of work; the CPU backend and loading use it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace wisp {

// The caller's thread takes part, so a pool of one starts no thread. One parallel_for at a time:
// calls come from one thread. Workers spin briefly between calls, then sleep.
class ThreadPool {
 public:
  explicit ThreadPool(size_t threads);  // 0: one a processor available to this process
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  size_t size() const;

  // Calls body(begin, end, worker) over [0, count) in pieces of at most `grain`, each index once,
  // on any worker in 0..size(); returns when all are done. The first exception that a body throws
  // is rethrown here after the pieces that run have ended; later ones are skipped.
  void parallel_for(size_t count, size_t grain,
                    const std::function<void(size_t begin, size_t end, size_t worker)>& body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wisp
