#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "report/page.h"
#include "report/testing/pages.h"
#include "runs/testing/fakes.h"

namespace assay::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(BatchPage, SaysWhatCameOfEachInstance) {
  const auto view = BatchViewOf(testing::BatchSummary(12), "summary.json");
  ASSERT_TRUE(view) << ToString(view.error());
  EXPECT_EQ(view->rows.size(), 12u);
  EXPECT_EQ(view->CountOf("accepted"), 6u);
  EXPECT_EQ(view->rows[1].ended, 120.0);
  const std::string page = BatchPage(*view);
  EXPECT_THAT(
      page,
      AllOf(HasSubstr("6 of 12 instances accepted"), HasSubstr("not every instance accepted"),
            HasSubstr("op_3-T=bf16-sm_90"), HasSubstr("Progress of the batch"),
            HasSubstr("judge: assay-worker sha256"), HasSubstr("up to date"), HasSubstr("$1.56")));
}

TEST(BatchPage, ThousandsOfInstancesStaySmall) {
  const auto view = BatchViewOf(testing::BatchSummary(5000), "summary.json");
  ASSERT_TRUE(view);
  const std::string page = BatchPage(*view);
  EXPECT_LT(page.size(), 1'000'000u);
  EXPECT_THAT(page, HasSubstr("left out"));
}

TEST(BatchPage, WhatIsOfAnotherTypeIsLeftOut) {
  Json summary = testing::BatchSummary(2);
  summary["instances"][0]["gates"] = "none";
  summary["instances"][1]["tokens"] = Json::array({1});
  summary["instances"][1]["usd"] = nullptr;
  summary["instances"][1]["instance"] = "<script>x</script>";
  summary["instances"].push_back(7);
  summary["measured"]["began"] = "2026-99-99T99:99:99Z";
  summary["drift"] = Json::object();
  const auto view = BatchViewOf(summary, "summary.json");
  ASSERT_TRUE(view);
  EXPECT_THAT(BatchPage(*view), AllOf(HasSubstr("&lt;script&gt;"), Not(HasSubstr("<script"))));
}

TEST(BatchPage, AnotherDocumentIsAnError) {
  const testing::TemporaryFolder folder;
  EXPECT_FALSE(HoldsBatch(folder.path()));
  std::ofstream(folder.path() / "batch.json") << "{}";
  EXPECT_TRUE(HoldsBatch(folder.path()));
  EXPECT_THAT(ReadBatchView(folder.path()).error().message, HasSubstr("no summary yet"));
  for (const char* const text : {"{\"schema\": \"assay.run/1\"}", "[1]", "\xff", ""}) {
    std::ofstream(folder.path() / "summary.json") << text;
    EXPECT_FALSE(ReadBatchView(folder.path())) << text;
  }
}

TEST(SecondsOf, StampsAndOtherTexts) {
  EXPECT_EQ(SecondsOf("1970-01-02T00:00:01.500Z"), 86401.5);
  EXPECT_EQ(SecondsOf("2026-01-31T12:00:00Z"), 1769860800.0);
  for (const char* const text : {"", "2026-13-31T12:00:00Z", "2026-01-31 12:00:00Z",
                                 "2026-01-31T12:00:xxZ", "2026-01-31T12:00:00.Z"})
    EXPECT_FALSE(SecondsOf(text)) << text;
}

}  // namespace
}  // namespace assay::report
