#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "engine/batch.h"
#include "harness.h"

namespace wisp::engine {
namespace {

SchedulerOptions options() {
  return {.context = 2000,
          .max_slots = 8,
          .num_pages = 1000,
          .prefill_chunk = 128,
          .prefill_columns = 256,
          .decode_columns = 8};
}

// Plays the device and the engine: batches come back in order and choose token 1.
class Driver {
 public:
  explicit Driver(const SchedulerOptions& options) : scheduler(options) {}

  Sequence& add(uint32_t prompt, uint32_t chosen) {
    const uint64_t id = next_id_++;
    return scheduler.add(RequestId{id},
                         {.prompt = random_tokens(id, prompt, 32), .max_new_tokens = chosen});
  }

  Batch next() {
    Batch batch = scheduler.next();
    if (!batch.empty()) queue_.push_back(batch);
    return batch;
  }

  // The oldest batch comes back.
  void come_back() {
    const Batch batch = queue_.front();
    queue_.pop_front();
    for (const auto* pieces : {&batch.prefill, &batch.decode}) {
      for (const Piece& piece : *pieces) take(piece);
    }
    scheduler.collect();
  }

  Batch next_alone() {
    Batch batch = next();
    if (!batch.empty()) come_back();
    return batch;
  }

  size_t num_queued() const { return queue_.size(); }

  Scheduler scheduler;

 private:
  void take(const Piece& piece) {
    Sequence& sequence = *piece.sequence;
    scheduler.step_done(sequence);
    const uint32_t end = piece.first + piece.count;
    if (end > sequence.reported && end >= sequence.num_given) sequence.tokens.push_back(1);
    sequence.reported = std::max(sequence.reported, end);
    if (end == sequence.num_columns) scheduler.finish(sequence);
  }

  std::deque<Batch> queue_;
  uint64_t next_id_ = 0;
};

std::vector<uint32_t> sizes(const std::vector<Piece>& pieces) {
  std::vector<uint32_t> counts;
  counts.reserve(pieces.size());
  for (const Piece& piece : pieces) counts.push_back(piece.count);
  return counts;
}

using Sizes = std::vector<uint32_t>;

TEST(Scheduler, ChunksEndAtMultiplesOf64) {
  Driver driver(options());
  driver.add(300, 1);
  driver.add(70, 1);
  driver.add(200, 1);
  // 128 + 70, then 58 columns are left: too few for a chunk of the third.
  EXPECT_EQ(sizes(driver.next().prefill), (Sizes{128, 70}));
  EXPECT_EQ(sizes(driver.next().prefill), (Sizes{128, 128}));
  EXPECT_EQ(sizes(driver.next().prefill), (Sizes{44, 72}));
  EXPECT_TRUE(driver.next().empty());
  while (driver.num_queued() > 0) driver.come_back();
  EXPECT_TRUE(driver.scheduler.empty());
}

TEST(Scheduler, ALongPromptAndDecodesRunSideBySide) {
  Driver driver(options());
  for (int i = 0; i < 3; ++i) driver.add(10, 50);
  driver.next_alone();
  driver.add(1000, 5);
  for (int i = 0; i < 8; ++i) {
    const Batch batch = driver.next_alone();
    EXPECT_EQ(batch.decode.size(), 3U);
    EXPECT_EQ(batch.prefill.size(), 1U);
  }
}

TEST(Scheduler, DecodesTakeTurns) {
  SchedulerOptions narrow = options();
  narrow.decode_columns = 2;
  Driver driver(narrow);
  std::vector<Sequence*> all;
  all.reserve(5);
  for (int i = 0; i < 5; ++i) all.push_back(&driver.add(4, 100));
  driver.next();
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(driver.next().decode.size(), 2U);
    const auto [low, high] = std::minmax_element(
        all.begin(), all.end(), [](auto* a, auto* b) { return a->cursor < b->cursor; });
    EXPECT_LE((*high)->cursor - (*low)->cursor, 1U);
  }
}

TEST(Scheduler, AdmitsInOrder) {
  SchedulerOptions few = options();
  few.max_slots = 2;
  Driver driver(few);
  driver.add(20, 3);
  driver.add(20, 10);
  Sequence& third = driver.add(20, 1);
  Sequence& fourth = driver.add(20, 1);
  driver.next_alone();
  EXPECT_EQ(third.status, SequenceStatus::waiting);
  driver.next_alone();
  driver.next_alone();  // the first one ends
  driver.next();
  EXPECT_EQ(third.status, SequenceStatus::running);
  EXPECT_EQ(fourth.status, SequenceStatus::waiting);
}

TEST(Scheduler, ALargeRequestIsNotOvertaken) {
  SchedulerOptions few = options();
  few.num_pages = 10;
  Driver driver(few);
  driver.add(100, 10);  // 7 pages
  Sequence& large = driver.add(80, 1);
  Sequence& small = driver.add(10, 5);
  driver.next_alone();
  EXPECT_EQ(large.status, SequenceStatus::waiting);
  EXPECT_EQ(small.status, SequenceStatus::waiting);
}

TEST(Scheduler, TheYoungestIsPreempted) {
  SchedulerOptions few = options();
  few.num_pages = 6;
  Driver driver(few);
  Sequence& first = driver.add(32, 20);   // 2 pages, a third from position 32 on
  Sequence& second = driver.add(30, 20);  // 2 pages, a third from position 32 on
  Sequence& third = driver.add(20, 20);   // 2 pages
  driver.next();
  EXPECT_EQ(driver.scheduler.pages().num_free(), 0U);
  EXPECT_TRUE(driver.next().empty());  // no page, but a step in flight
  EXPECT_EQ(driver.scheduler.num_preemptions(), 0U);
  driver.come_back();
  EXPECT_EQ(driver.next_alone().decode.size(), 2U);
  EXPECT_EQ(third.status, SequenceStatus::waiting);
  EXPECT_EQ(third.cursor, 0U);
  EXPECT_EQ(third.reported, 20U);
  EXPECT_EQ(driver.scheduler.num_preemptions(), 1U);
  while (first.cursor < 48) driver.next_alone();
  EXPECT_EQ(second.status, SequenceStatus::running);
  while (!driver.scheduler.empty()) {
    driver.next_alone();
    ASSERT_LT(driver.scheduler.num_preemptions(), 10U);
  }
  EXPECT_EQ(driver.scheduler.pages().num_free(), 6U);
  EXPECT_EQ(driver.scheduler.slots().num_free(), 8U);
}

TEST(Scheduler, APreemptedOneLeavesTheTurnToTheOthers) {
  SchedulerOptions few = options();
  few.num_pages = 4;
  few.decode_columns = 1;
  Driver driver(few);
  driver.add(30, 100);
  driver.add(32, 5);  // needs a third page at once, and is the youngest
  driver.next_alone();
  for (int i = 0; i < 30; ++i) EXPECT_FALSE(driver.next_alone().empty());
}

TEST(Scheduler, AThinStepWaitsForTheHost) {
  Driver driver(options());
  driver.add(10, 10);
  Request penalized{.prompt = random_tokens(9, 10, 32), .max_new_tokens = 10};
  penalized.sampling.repeat_penalty = 1.5F;
  driver.scheduler.add(RequestId{50}, penalized);
  driver.next();
  EXPECT_TRUE(driver.next().empty());
  driver.come_back();
  EXPECT_EQ(driver.next().decode.size(), 2U);
}

TEST(Scheduler, AFinishedSequenceKeepsItsPagesUntilItsStepsAreBack) {
  Driver driver(options());
  Sequence& sequence = driver.add(40, 30);
  driver.next();
  driver.next();
  driver.scheduler.finish(sequence);
  driver.scheduler.collect();
  EXPECT_EQ(driver.scheduler.pages().num_free(), 997U);
  driver.come_back();
  EXPECT_EQ(driver.scheduler.pages().num_free(), 997U);
  driver.come_back();
  EXPECT_EQ(driver.scheduler.pages().num_free(), 1000U);
  EXPECT_TRUE(driver.scheduler.empty());
}

TEST(Batch, StepsNameColumnsLogitsAndNewPages) {
  Driver driver(options());
  Sequence& sequence = driver.add(70, 20);
  const Batch prompt = driver.next();
  const backend::Step first = make_step(prompt.prefill);
  ASSERT_EQ(first.columns.size(), 70U);
  EXPECT_EQ(first.columns[69].token, sequence.tokens[69]);
  EXPECT_EQ(first.columns[69].position, 69U);
  EXPECT_EQ(first.logit_columns, (std::vector<uint32_t>{69}));
  EXPECT_FALSE(first.read_logits);
  ASSERT_EQ(first.table_updates.size(), 1U);
  EXPECT_EQ(first.table_updates[0].first, 0U);
  EXPECT_EQ(first.table_updates[0].pages.size(), 5U);
  const backend::Step second = make_step(driver.next().decode);
  ASSERT_EQ(second.columns.size(), 1U);
  EXPECT_FALSE(second.columns[0].token.has_value());
  EXPECT_EQ(second.columns[0].position, 70U);
  EXPECT_TRUE(second.table_updates.empty());
  while (sequence.cursor < 80) driver.next();
  const backend::Step grown = make_step(driver.next().decode);
  ASSERT_EQ(grown.table_updates.size(), 1U);
  EXPECT_EQ(grown.table_updates[0].first, 5U);
  EXPECT_EQ(grown.table_updates[0].pages.size(), 1U);
}

}  // namespace
}  // namespace wisp::engine
