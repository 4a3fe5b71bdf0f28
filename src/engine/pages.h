// Who owns which KV page and which slot.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plan/plan.h"

namespace wisp::engine {

// KV pages that `positions` positions of one sequence need.
constexpr uint32_t pages_for(uint64_t positions) {
  return static_cast<uint32_t>((positions + plan::kPageTokens - 1) / plan::kPageTokens);
}

// The ids 0..size-1 with reference counts; an id without references is free. Used for pages, which
// may be shared, and for slots, which are not.
class IdPool {
 public:
  // Without a seed the most recently freed id is taken first, at the start the lowest; with one a
  // free id is picked at random.
  explicit IdPool(uint32_t size, std::optional<uint64_t> shuffle_seed = std::nullopt);

  uint32_t size() const { return static_cast<uint32_t>(references_.size()); }
  uint32_t num_free() const { return static_cast<uint32_t>(free_.size()); }
  uint32_t references(uint32_t id) const;

  // A free id, now with one reference; nullopt when none is free.
  std::optional<uint32_t> take();
  // One more reference to an id that has some.
  void retain(uint32_t id);
  // One reference less; the last one frees the id.
  void release(uint32_t id);

 private:
  std::vector<uint32_t> references_;
  std::vector<uint32_t> free_;  // taken from the back
  std::optional<uint64_t> shuffle_seed_;
  uint64_t num_taken_ = 0;
};

// The pages of one sequence in order of position. Holds one reference to each and gives them back
// when it goes. The pool must outlive it.
class PageList {
 public:
  explicit PageList(IdPool& pool) : pool_(&pool) {}
  PageList(PageList&& other) noexcept;
  PageList& operator=(PageList&& other) noexcept;
  ~PageList() { clear(); }

  std::span<const uint32_t> ids() const { return ids_; }
  uint32_t size() const { return static_cast<uint32_t>(ids_.size()); }

  // Takes pages until there are `count`; false, and nothing changed, when too few are free.
  bool grow_to(uint32_t count);
  void clear();
  // A second owner of the first `count` pages.
  PageList share(uint32_t count) const;

 private:
  IdPool* pool_;
  std::vector<uint32_t> ids_;
};

}  // namespace wisp::engine
