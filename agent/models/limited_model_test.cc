#include "agent/models/limited_model.h"

#include <gtest/gtest.h>

#include <thread>

#include "agent/testing/fakes.h"

namespace assay::models {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Place = RequestLimiter::Place;

class Nobody final : public RequestLimiter::Waiter {
 public:
  void OnPlaceFree() override { ++told; }
  int told = 0;
};

// The place that is had, or 0.
Place PlaceOf(const std::variant<Place, milliseconds>& answer) {
  return std::holds_alternative<Place>(answer) ? std::get<Place>(answer) : 0;
}
milliseconds WaitOf(const std::variant<Place, milliseconds>& answer) {
  return std::holds_alternative<Place>(answer) ? milliseconds(0) : std::get<milliseconds>(answer);
}

class RequestLimiterTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  Nobody a_, b_;
};

TEST_F(RequestLimiterTest, NoMoreAtOnceThanAllowed) {
  RequestLimiter limiter({.at_once = 2}, clock_);
  const Place first = PlaceOf(limiter.Take(a_, 10));
  EXPECT_NE(first, 0u);
  EXPECT_NE(PlaceOf(limiter.Take(a_, 10)), 0u);
  EXPECT_EQ(PlaceOf(limiter.Take(a_, 10)), 0u);
  EXPECT_EQ(PlaceOf(limiter.Take(b_, 10)), 0u);
  limiter.GiveBack(first, 10);
  EXPECT_EQ(a_.told, 1);
  // Whoever waited longest goes first.
  EXPECT_EQ(PlaceOf(limiter.Take(b_, 10)), 0u);
  EXPECT_NE(PlaceOf(limiter.Take(a_, 10)), 0u);
}

TEST_F(RequestLimiterTest, RequestsOfAMinute) {
  RequestLimiter limiter({.at_once = 0, .requests_per_minute = 2}, clock_);
  ASSERT_NE(PlaceOf(limiter.Take(a_, 1)), 0u);
  clock_.Advance(seconds(20));
  ASSERT_NE(PlaceOf(limiter.Take(a_, 1)), 0u);
  EXPECT_EQ(WaitOf(limiter.Take(a_, 1)), seconds(40));
  clock_.Advance(seconds(40));
  EXPECT_NE(PlaceOf(limiter.Take(a_, 1)), 0u);
  EXPECT_EQ(WaitOf(limiter.Take(a_, 1)), seconds(20));
}

TEST_F(RequestLimiterTest, TokensOfAMinuteAsTheServiceCountedThem) {
  RequestLimiter limiter({.at_once = 0, .tokens_per_minute = 100}, clock_);
  const Place first = PlaceOf(limiter.Take(a_, 10));
  ASSERT_NE(first, 0u);
  limiter.GiveBack(first, 95);
  EXPECT_EQ(WaitOf(limiter.Take(a_, 10)), seconds(60));
  // What is smaller than the rest still goes; nobody else was before it.
  EXPECT_NE(PlaceOf(limiter.Take(a_, 5)), 0u);
  clock_.Advance(seconds(60));
  // One that is larger than the limit waits for an empty minute, not for ever.
  EXPECT_NE(PlaceOf(limiter.Take(a_, 1000)), 0u);
}

TEST_F(RequestLimiterTest, OneThatIsTooLargeWaitsForAnEmptyMinute) {
  RequestLimiter limiter({.at_once = 0, .tokens_per_minute = 100}, clock_);
  ASSERT_NE(PlaceOf(limiter.Take(a_, 1)), 0u);
  EXPECT_EQ(WaitOf(limiter.Take(a_, 1000)), seconds(60));
  clock_.Advance(seconds(60));
  EXPECT_NE(PlaceOf(limiter.Take(a_, 1000)), 0u);
}

TEST_F(RequestLimiterTest, AHoldIsForAll) {
  RequestLimiter limiter({}, clock_);
  ASSERT_NE(PlaceOf(limiter.Take(a_, 1)), 0u);
  limiter.Hold(seconds(7));
  limiter.Hold(seconds(3));  // a shorter one does not end it
  EXPECT_EQ(WaitOf(limiter.Take(b_, 1)), seconds(7));
  clock_.Advance(seconds(7));
  EXPECT_NE(PlaceOf(limiter.Take(b_, 1)), 0u);
}

TEST_F(RequestLimiterTest, WhoLeavesHoldsNobodyUp) {
  RequestLimiter limiter({.at_once = 1}, clock_);
  const Place place = PlaceOf(limiter.Take(a_, 1));
  EXPECT_EQ(PlaceOf(limiter.Take(a_, 1)), 0u);
  EXPECT_EQ(PlaceOf(limiter.Take(b_, 1)), 0u);
  limiter.Leave(a_);
  limiter.GiveBack(place, 1);
  EXPECT_NE(PlaceOf(limiter.Take(b_, 1)), 0u);
}

// A service that is asked too much once.
class Throttled final : public Model {
 public:
  void Start(Ticket ticket, ModelRequest) override { started.push_back(ticket); }
  void Cancel(Ticket) override {}
  std::vector<ModelEvent> Poll(milliseconds timeout) override {
    waited.push_back(timeout);
    return std::exchange(next, {});
  }
  void Wake() override {}
  std::vector<Ticket> started;
  std::vector<milliseconds> waited;
  std::vector<ModelEvent> next;
};

TEST(LimitedModelTest, ThrottlingOfOneHoldsTheOthers) {
  FakeClock clock;
  RequestLimiter limiter({}, clock);
  Throttled first_inner, second_inner;
  LimitedModel first(first_inner, limiter), second(second_inner, limiter);
  first.Start(1, {});
  EXPECT_TRUE(first.Poll(milliseconds(0)).empty());
  EXPECT_EQ(first_inner.started, std::vector<Ticket>{1});
  ModelEvent event{.ticket = 1, .kind = ModelEvent::Kind::kRetrying};
  event.wait = seconds(30);
  event.throttled = true;
  first_inner.next = {event};
  EXPECT_EQ(first.Poll(milliseconds(0)).size(), 1u);
  second.Start(1, {});
  (void)second.Poll(milliseconds(100'000));
  EXPECT_TRUE(second_inner.started.empty());
  EXPECT_EQ(second_inner.waited.back(), seconds(30));  // no longer than it takes
  EXPECT_FALSE(second.Stuck());
  clock.Advance(seconds(30));
  (void)second.Poll(milliseconds(0));
  EXPECT_EQ(second_inner.started, std::vector<Ticket>{1});
}

TEST(LimitedModelTest, ACancelledRequestGivesItsPlaceBack) {
  FakeClock clock;
  RequestLimiter limiter({.at_once = 1}, clock);
  Throttled first_inner, second_inner;
  LimitedModel second(second_inner, limiter);
  {
    LimitedModel first(first_inner, limiter);
    first.Start(1, {});
    first.Start(2, {});
    (void)first.Poll(milliseconds(0));
    second.Start(1, {});
    (void)second.Poll(milliseconds(0));
    EXPECT_TRUE(second_inner.started.empty());
    first.Cancel(2);  // waits before the second
    first.Cancel(1);
    (void)second.Poll(milliseconds(0));
    EXPECT_EQ(second_inner.started.size(), 1u);
    second.Cancel(1);
    first.Start(3, {});
    (void)first.Poll(milliseconds(0));
    EXPECT_EQ(first_inner.started.back(), 3u);
  }
  // So does a model that goes.
  second.Start(2, {});
  (void)second.Poll(milliseconds(0));
  EXPECT_EQ(second_inner.started.size(), 2u);
}

}  // namespace
}  // namespace assay::models
