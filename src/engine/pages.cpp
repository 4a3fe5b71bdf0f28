#include "engine/pages.h"

#include <utility>

#include "base/error.h"
#include "engine/random.h"

namespace wisp::engine {

IdPool::IdPool(uint32_t size, std::optional<uint64_t> shuffle_seed)
    : references_(size, 0), shuffle_seed_(shuffle_seed) {
  free_.reserve(size);
  for (uint32_t id = size; id > 0; --id) free_.push_back(id - 1);
}

uint32_t IdPool::references(uint32_t id) const {
  ensure(id < size(), "IdPool: id out of range");
  return references_[id];
}

std::optional<uint32_t> IdPool::take() {
  if (free_.empty()) return std::nullopt;
  if (shuffle_seed_) {
    std::swap(free_[random_bits(*shuffle_seed_, num_taken_) % free_.size()], free_.back());
  }
  ++num_taken_;
  const uint32_t id = free_.back();
  free_.pop_back();
  references_[id] = 1;
  return id;
}

void IdPool::retain(uint32_t id) {
  ensure(references(id) > 0, "IdPool: a free id was retained");
  ++references_[id];
}

void IdPool::release(uint32_t id) {
  ensure(references(id) > 0, "IdPool: a free id was released");
  if (--references_[id] == 0) free_.push_back(id);
}

PageList::PageList(PageList&& other) noexcept
    : pool_(other.pool_), ids_(std::exchange(other.ids_, {})) {}

PageList& PageList::operator=(PageList&& other) noexcept {
  if (this != &other) {
    clear();
    pool_ = other.pool_;
    ids_ = std::exchange(other.ids_, {});
  }
  return *this;
}

bool PageList::grow_to(uint32_t count) {
  if (count <= size()) return true;
  if (count - size() > pool_->num_free()) return false;
  ids_.reserve(count);
  while (size() < count) ids_.push_back(*pool_->take());
  return true;
}

void PageList::clear() {
  for (const uint32_t id : ids_) pool_->release(id);
  ids_.clear();
}

PageList PageList::share(uint32_t count) const {
  ensure(count <= size(), "PageList: more pages shared than there are");
  PageList list(*pool_);
  list.ids_.assign(ids_.begin(), ids_.begin() + count);
  for (const uint32_t id : list.ids_) pool_->retain(id);
  return list;
}

}  // namespace wisp::engine
