// A headless Chromium, spoken to through its debugging pipe: what a page looks like to a browser, in tests.
//
//   auto browser = Browser::Start();                         // nothing where no Chromium is installed
//   const Shown shown = browser->Show(page, {.width = 400, .dark = true});
//   EXPECT_LE(shown.content_width, 400);
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"

namespace assay::testing {

struct Screen {
  int width = 1280;
  bool dark = false;
};

struct Shown {
  double content_width = 0, content_height = 0;
  std::vector<std::string> requests;  ///< Addresses that were asked for, the page's own among them.
  std::vector<std::string> messages;  ///< Of the console and the log: errors, warnings, all.
  std::string title;
  std::string background;    ///< Computed colour of the body.
  double smallest_text = 0;  ///< Pixels, of what is shown in the body.
};

class Browser {
 public:
  /// Nothing where there is no Chromium; `why` says so.
  static std::unique_ptr<Browser> Start(std::string& why);
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  /// Loads the page anew, its own scripts forbidden, and says what came of it.
  Shown Show(const Path& page, const Screen& screen);
  /// Bytes of the page as a PDF, 0 where it could not be printed.
  std::size_t PrintedBytes();

 private:
  Browser() = default;
  Json Send(const std::string& method, Json parameters, bool to_page = true);
  std::optional<Json> Receive();

  Path profile_;
  int pid_ = -1;
  UniqueFd to_, from_;
  std::string buffer_;
  std::string session_;
  int next_ = 0;
  std::vector<Json> events_;
};

}  // namespace assay::testing
