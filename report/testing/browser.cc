#include "report/testing/browser.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace assay::testing {
namespace {

// An answer of a browser that is alive comes at once; a machine under load may take its time.
constexpr int kPatienceMilliseconds = 120'000;

std::optional<std::string> FindChromium() {
  for (const char* const name : {"chromium", "chromium-browser", "google-chrome"}) {
    const char* const path = std::getenv("PATH");
    std::string folders = path == nullptr ? "" : path;
    for (std::size_t at = 0; at <= folders.size();) {
      const std::size_t end = std::min(folders.find(':', at), folders.size());
      const std::string candidate = folders.substr(at, end - at) + "/" + name;
      if (::access(candidate.c_str(), X_OK) == 0) return candidate;
      at = end + 1;
    }
  }
  return std::nullopt;
}

}  // namespace

std::unique_ptr<Browser> Browser::Start(std::string& why) {
  const std::optional<std::string> program = FindChromium();
  if (!program) {
    why = "no chromium is installed (Debian: apt-get install chromium)";
    return nullptr;
  }
  std::unique_ptr<Browser> browser(new Browser);
  std::string profile = (std::filesystem::temp_directory_path() / "assay-chromium-XXXXXX").string();
  if (::mkdtemp(profile.data()) == nullptr) {
    why = "no temporary folder";
    return nullptr;
  }
  browser->profile_ = profile;
  int to[2], from[2];
  if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) {
    why = "no pipes";
    return nullptr;
  }
  UniqueFd their_in(to[0]), their_out(from[1]);
  browser->to_ = UniqueFd(to[1]);
  browser->from_ = UniqueFd(from[0]);
  // The browser reads commands on descriptor 3 and answers on 4. Ours are moved out of the way first: they may have these numbers.
  UniqueFd in(::fcntl(their_in.get(), F_DUPFD_CLOEXEC, 10));
  UniqueFd out(::fcntl(their_out.get(), F_DUPFD_CLOEXEC, 10));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.get(), 3);
  posix_spawn_file_actions_adddup2(&actions, out.get(), 4);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<std::string> words = {*program,
                                    "--headless=new",
                                    "--disable-gpu",
                                    "--no-first-run",
                                    "--hide-scrollbars",
                                    "--disable-dev-shm-usage",
                                    "--remote-debugging-pipe",
                                    "--user-data-dir=" + profile};
  // As root its own jail cannot be made; what it shows is our page.
  if (::geteuid() == 0) words.emplace_back("--no-sandbox");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int failed =
      ::posix_spawn(&browser->pid_, program->c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  // Held by the browser alone, they end with it: one that only says how it could be installed (Ubuntu's) is not waited for.
  for (UniqueFd* const theirs : {&their_in, &their_out, &in, &out}) *theirs = UniqueFd();
  if (failed != 0) {
    browser->pid_ = -1;
    why = *program + " cannot be started";
    return nullptr;
  }
  const Json target = browser->Send("Target.createTarget", {{"url", "about:blank"}}, false);
  if (!target.contains("targetId")) {
    why = *program + " does not answer on its debugging pipe";
    return nullptr;
  }
  const Json attached = browser->Send("Target.attachToTarget",
                                      {{"targetId", target["targetId"]}, {"flatten", true}}, false);
  browser->session_ = attached.value("sessionId", "");
  for (const char* const domain : {"Page", "Network", "Log", "Runtime"})
    browser->Send(std::string(domain) + ".enable", Json::object());
  browser->Send("Page.setLifecycleEventsEnabled", {{"enabled", true}});
  return browser;
}

Browser::~Browser() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
  }
  std::error_code ignored;
  if (!profile_.empty()) std::filesystem::remove_all(profile_, ignored);
}

std::optional<Json> Browser::Receive() {
  while (true) {
    const std::size_t end = buffer_.find('\0');
    if (end != std::string::npos) {
      Json message = Json::parse(buffer_.substr(0, end), nullptr, false);
      buffer_.erase(0, end + 1);
      if (message.is_object()) return message;
      continue;
    }
    pollfd ready{.fd = from_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, kPatienceMilliseconds) <= 0) return std::nullopt;
    char bytes[1 << 16];
    const ssize_t got = ::read(from_.get(), bytes, sizeof bytes);
    if (got <= 0) return std::nullopt;
    buffer_.append(bytes, static_cast<std::size_t>(got));
  }
}

// The result of a command; an empty object where it failed.
Json Browser::Send(const std::string& method, Json parameters, bool to_page) {
  const int id = ++next_;
  Json command = {{"id", id}, {"method", method}, {"params", std::move(parameters)}};
  if (to_page) command["sessionId"] = session_;
  std::string text = command.dump();
  text += '\0';
  std::string_view left = text;
  while (!left.empty()) {
    const ssize_t written = ::write(to_.get(), left.data(), left.size());
    if (written <= 0) return Json::object();
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  while (std::optional<Json> message = Receive()) {
    if (message->value("id", 0) == id) return message->value("result", Json::object());
    events_.push_back(*std::move(message));
  }
  return Json::object();
}

Shown Browser::Show(const Path& page, const Screen& screen) {
  Send("Emulation.setDeviceMetricsOverride", {{"width", screen.width},
                                              {"height", 900},
                                              {"deviceScaleFactor", 1},
                                              {"mobile", screen.width < 600}});
  const Json feature = {{"name", "prefers-color-scheme"},
                        {"value", screen.dark ? "dark" : "light"}};
  Send("Emulation.setEmulatedMedia", {{"media", ""}, {"features", Json::array({feature})}});
  Send("Emulation.setScriptExecutionDisabled", {{"value", true}});
  events_.clear();
  const Json going =
      Send("Page.navigate", {{"url", "file://" + std::filesystem::absolute(page).string()}});
  // Of this navigation: an earlier page may still be telling that it is there.
  const std::string loader = going.value("loaderId", "");
  const auto loaded = [&] {
    for (const Json& event : events_) {
      if (event.value("method", "") == "Page.lifecycleEvent" &&
          event["params"].value("loaderId", "") == loader &&
          event["params"].value("name", "") == "load")
        return true;
    }
    return false;
  };
  while (!loaded()) {
    std::optional<Json> message = Receive();
    if (!message) break;
    events_.push_back(*std::move(message));
  }
  Shown shown;
  const Json metrics = Send("Page.getLayoutMetrics", Json::object());
  if (metrics.contains("cssContentSize")) {
    shown.content_width = metrics["cssContentSize"].value("width", 0.0);
    shown.content_height = metrics["cssContentSize"].value("height", 0.0);
  }
  // The page's own scripts stay forbidden; ours asks what it computed.
  Send("Emulation.setScriptExecutionDisabled", {{"value", false}});
  const Json asked = Send("Runtime.evaluate", {{"expression", R"js(
    JSON.stringify((() => {
      let smallest = 1000;
      for (const e of document.body.querySelectorAll('*')) {
        if (e.closest('svg') || !e.checkVisibility() || ![...e.childNodes].some(n => n.nodeType == 3 && n.data.trim())) continue;
        smallest = Math.min(smallest, parseFloat(getComputedStyle(e).fontSize));
      }
      return {title: document.title, background: getComputedStyle(document.body).backgroundColor, smallest};
    })()))js"},
                                               {"returnByValue", true}});
  if (asked.contains("result") && asked["result"].value("type", "") == "string") {
    const Json answer = Json::parse(asked["result"]["value"].get<std::string>(), nullptr, false);
    if (answer.is_object()) {
      shown.title = answer.value("title", "");
      shown.background = answer.value("background", "");
      shown.smallest_text = answer.value("smallest", 0.0);
    }
  }
  for (const Json& event : events_) {
    const std::string method = event.value("method", "");
    if (method == "Network.requestWillBeSent")
      shown.requests.push_back(event["params"]["request"].value("url", ""));
    if (method == "Log.entryAdded" || method == "Runtime.consoleAPICalled" ||
        method == "Runtime.exceptionThrown" || method == "Page.javascriptDialogOpening")
      shown.messages.push_back(event["params"].dump());
  }
  return shown;
}

std::size_t Browser::PrintedBytes() {
  const Json printed = Send("Page.printToPDF", {{"printBackground", true}});
  return printed.value("data", "").size() * 3 / 4;
}

}  // namespace assay::testing
