// Pages as a browser shows them: wide and narrow, light and dark, without scripts, without asking for anything, and on paper.
#include "report/testing/browser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "report/page.h"
#include "report/testing/pages.h"
#include "runs/testing/fakes.h"

namespace assay::report {
namespace {

using testing::Browser;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Shown;
using ::testing::SizeIs;

// One browser for all tests: its start is most of what they take.
class BrowserTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { browser_ = Browser::Start(why_); }
  static void TearDownTestSuite() { browser_.reset(); }

  void SetUp() override {
    if (browser_ == nullptr) GTEST_SKIP() << why_;
  }

  Path Write(const std::string& name, const std::string& page) const {
    const Path path = folder_.path() / name;
    std::ofstream(path) << page;
    return path;
  }

  void ExpectGood(const Path& page, const std::string& title) {
    std::string light, dark;
    for (const int width : {1280, 400}) {
      for (const bool is_dark : {false, true}) {
        const Shown shown = browser_->Show(page, {.width = width, .dark = is_dark});
        SCOPED_TRACE(std::to_string(width) + (is_dark ? ", dark" : ", light"));
        EXPECT_THAT(shown.title, HasSubstr(title));
        EXPECT_LE(shown.content_width, width) << "the page scrolls sideways";
        EXPECT_GT(shown.content_height, 600);
        EXPECT_THAT(shown.messages, IsEmpty());
        EXPECT_THAT(shown.requests, SizeIs(1)) << "the page itself, and nothing else";
        EXPECT_GE(shown.smallest_text, 10);
        (is_dark ? dark : light) = shown.background;
      }
    }
    EXPECT_NE(light, dark);
    EXPECT_GT(browser_->PrintedBytes(), 10'000u);
  }

  testing::TemporaryFolder folder_;
  static inline std::unique_ptr<Browser> browser_;
  static inline std::string why_;
};

TEST_F(BrowserTest, TheDemoRun) {
  ExpectGood(Write("demo.html", testing::DemoPage(folder_.path())), "embedding_rmsnorm_backward");
}

TEST_F(BrowserTest, ABatch) {
  const auto view = BatchViewOf(testing::BatchSummary(40), "summary.json");
  ASSERT_TRUE(view);
  ExpectGood(Write("batch.html", BatchPage(*view)), "batch");
}

TEST_F(BrowserTest, AHostileRun) {
  const Path run = folder_.path() / "run";
  testing::WriteHostileRun(run);
  const auto view = ReadRunView(run, {});
  ASSERT_TRUE(view) << ToString(view.error());
  ExpectGood(Write("hostile.html", RunPage(*view)), "<script>alert(1)</script>");
}

TEST_F(BrowserTest, TheTestItselfSeesWhatItLooksFor) {
  const Path page = Write(
      "bad.html",
      "<!doctype html><meta name=viewport content='width=device-width'><title>t</title>"
      "<link rel=stylesheet href=missing.css><div style='width:3000px;font-size:4px'>wide</div>");
  const Shown shown = browser_->Show(page, {.width = 400});
  EXPECT_GT(shown.content_width, 400);
  EXPECT_THAT(shown.requests, SizeIs(2));
  EXPECT_THAT(shown.messages, SizeIs(1));
  EXPECT_LT(shown.smallest_text, 10);
}

}  // namespace
}  // namespace assay::report
