#include "report/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "report/svg.h"
#include "report/words.h"

namespace assay::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Html, WhatIsTextStaysText) {
  const Html html =
      E("p", {{"title", "\"><script>alert(1)</script>"}}, "</p><img src=x onerror=alert(1)>'&");
  EXPECT_EQ(html.markup(),
            "<p title=\"&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;\">"
            "&lt;/p&gt;&lt;img src=x onerror=alert(1)&gt;&#39;&amp;</p>");
}

TEST(Html, MarkupIsNotEscapedAgain) {
  EXPECT_EQ(E("ul", {}, E("li", {}, "a"), "b").markup(), "<ul><li>a</li>b</ul>");
}

TEST(Html, NamesBreakBetweenTheirWords) {
  EXPECT_EQ(Breakable("rms_norm").markup(), "rms_<wbr>norm");
  EXPECT_EQ(Breakable("a_").markup(), "a_");
  EXPECT_EQ(Breakable("").markup(), "");
}

TEST(Html, BytesThatNoPageMayHoldAreReplaced) {
  EXPECT_EQ(Html::Text("a\xff z").markup(), "a\xef\xbf\xbd z");
  EXPECT_EQ(Html::Text(std::string_view("a\0b\x1b", 4)).markup(),
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd");
  // U+202E turns the rest of a line round, U+0085 is a control; U+00A0 and other writing are neither.
  EXPECT_EQ(Html::Text("\xe2\x80\xae \xc2\x85").markup(), "\xef\xbf\xbd \xef\xbf\xbd");
  EXPECT_EQ(Html::Text("\xc2\xa0 \xd7\xa9 \xe2\x80\x93 \n\t").markup(),
            "\xc2\xa0 \xd7\xa9 \xe2\x80\x93 \n\t");
}

TEST(HtmlDeathTest, WhatCouldRunOrFetchCannotBeSaid) {
  EXPECT_DEATH(E("a", {{"href", "javascript:alert(1)"}}, "x"), "leads out");
  EXPECT_DEATH(E("p", {{"onclick", "x"}}, "x"), "run or fetch");
  EXPECT_DEATH(E("img", {{"src", "x"}}), "run or fetch");
  EXPECT_DEATH(E("script", {}, "x"), "no text");
  EXPECT_EQ(E("a", {{"href", "#cost"}}, "x").markup(), "<a href=\"#cost\">x</a>");
}

TEST(Ration, WhatDoesNotFitIsSaidToBeLeftOut) {
  Ration ration(100);
  EXPECT_THAT(ration.Take(E("p", {}, "short"), "It is").markup(), HasSubstr("short"));
  const std::string cut = ration.Take(E("p", {}, std::string(200, 'x')), "The source is").markup();
  EXPECT_THAT(cut, HasSubstr("The source is left out"));
  EXPECT_THAT(cut, Not(HasSubstr("xxx")));
  EXPECT_THAT(ration.Take(E("p", {}, "small"), "It is").markup(), HasSubstr("small"));
}

TEST(Svg, NumbersAreShortAndFinite) {
  Canvas canvas(10, 20);
  canvas.Line({1.0 / 3, 0}, {std::numeric_limits<double>::quiet_NaN(), 1e300}, "axis");
  canvas.Text({0, 0}, "<&", "label");
  const std::string markup = canvas.Take("A title", "In words").markup();
  EXPECT_THAT(markup, HasSubstr("viewBox=\"0 0 10 20\""));
  EXPECT_THAT(markup, HasSubstr("x1=\"0.33\""));
  EXPECT_THAT(markup, HasSubstr("x2=\"0\""));
  EXPECT_THAT(markup, HasSubstr("y2=\"100000\""));
  EXPECT_THAT(markup, HasSubstr("&lt;&amp;"));
  EXPECT_THAT(markup, HasSubstr("<title>A title</title><desc>In words</desc>"));
}

TEST(Words, NumbersAsPeopleReadThem) {
  EXPECT_EQ(Count(999), "999");
  EXPECT_EQ(Count(12'034), "12,034");
  EXPECT_EQ(Count(12'345'678), "12.3 M");
  EXPECT_EQ(Duration(0.04), "0.0 s");
  EXPECT_EQ(Duration(200), "3 min 20 s");
  EXPECT_EQ(Duration(7500), "2 h 5 min");
  EXPECT_EQ(Duration(-1), "unknown");
  EXPECT_EQ(Bytes(1536), "1.5 KB");
  EXPECT_EQ(Moment("2026-01-31T12:00:00.123Z"), "2026-01-31 12:00 UTC");
  EXPECT_EQ(Moment("yesterday"), "yesterday");
  EXPECT_EQ(Plural(1, "run"), "1 run");
  EXPECT_EQ(Plural(2, "run"), "2 runs");
}

}  // namespace
}  // namespace assay::report
