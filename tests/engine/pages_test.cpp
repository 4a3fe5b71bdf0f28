#include "engine/pages.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <utility>

namespace wisp::engine {
namespace {

TEST(Pages, CountOfPositions) {
  EXPECT_EQ(pages_for(0), 0U);
  EXPECT_EQ(pages_for(1), 1U);
  EXPECT_EQ(pages_for(16), 1U);
  EXPECT_EQ(pages_for(17), 2U);
}

TEST(IdPool, GivesEachIdOnce) {
  for (const auto seed : {std::optional<uint64_t>(), std::optional<uint64_t>(5)}) {
    IdPool pool(20, seed);
    std::set<uint32_t> taken;
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(taken.insert(*pool.take()).second);
    EXPECT_EQ(*taken.rbegin(), 19U);
    EXPECT_FALSE(pool.take().has_value());
    EXPECT_EQ(pool.num_free(), 0U);
    pool.release(7);
    EXPECT_EQ(pool.take(), 7U);
  }
}

TEST(IdPool, SeedShufflesTheOrder) {
  const auto order = [](std::optional<uint64_t> seed) {
    IdPool pool(30, seed);
    std::vector<uint32_t> ids;
    while (const auto id = pool.take()) ids.push_back(*id);
    return ids;
  };
  EXPECT_EQ(order({})[0], 0U);
  EXPECT_EQ(order({})[29], 29U);
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
  EXPECT_NE(order(1), order({}));
}

TEST(IdPool, CountsReferences) {
  IdPool pool(2);
  const uint32_t id = *pool.take();
  pool.retain(id);
  EXPECT_EQ(pool.references(id), 2U);
  pool.release(id);
  EXPECT_EQ(pool.num_free(), 1U);
  pool.release(id);
  EXPECT_EQ(pool.num_free(), 2U);
  EXPECT_THROW(pool.release(id), std::logic_error);
  EXPECT_THROW(pool.retain(id), std::logic_error);
  EXPECT_THROW(pool.release(2), std::logic_error);
}

TEST(PageList, GrowsAllOrNothing) {
  IdPool pool(5);
  PageList a(pool);
  PageList b(pool);
  EXPECT_TRUE(a.grow_to(3));
  EXPECT_TRUE(a.grow_to(2));
  EXPECT_EQ(a.size(), 3U);
  EXPECT_FALSE(b.grow_to(3));
  EXPECT_EQ(b.size(), 0U);
  EXPECT_EQ(pool.num_free(), 2U);
  EXPECT_TRUE(b.grow_to(2));
  a.clear();
  EXPECT_EQ(pool.num_free(), 3U);
}

TEST(PageList, GivesBackOnce) {
  IdPool pool(6);
  {
    PageList a(pool);
    a.grow_to(4);
    PageList moved(std::move(a));
    EXPECT_EQ(moved.size(), 4U);
    PageList assigned(pool);
    assigned.grow_to(2);
    assigned = std::move(moved);
    EXPECT_EQ(assigned.size(), 4U);
    EXPECT_EQ(pool.num_free(), 2U);
  }
  EXPECT_EQ(pool.num_free(), 6U);
}

TEST(PageList, SharedPagesStayUntilTheLastOwnerGoes) {
  IdPool pool(4);
  PageList fork(pool);
  {
    PageList a(pool);
    a.grow_to(3);
    fork = a.share(2);
    EXPECT_EQ(fork.ids()[1], a.ids()[1]);
    EXPECT_EQ(pool.references(fork.ids()[0]), 2U);
    EXPECT_THROW(a.share(4), std::logic_error);
  }
  EXPECT_EQ(pool.num_free(), 2U);
  fork.clear();
  EXPECT_EQ(pool.num_free(), 4U);
}

}  // namespace
}  // namespace wisp::engine
