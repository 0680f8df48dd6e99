#include "validator/engine/device_turn.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

namespace assay::engine {
namespace {

using Use = DeviceTurn::Use;

class DeviceTurnTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// Until somebody holds the first byte, as whoever waits for the card does.
  void WaitUntilOneIsNext() const {
    const UniqueFd file(::open(file_.c_str(), O_RDWR | O_CLOEXEC));
    struct flock lock{};
    do {
      lock = {};
      lock.l_type = F_WRLCK;
      lock.l_whence = SEEK_SET;
      lock.l_len = 1;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } while (::fcntl(file.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK);
  }

  const Path folder_ =
      std::filesystem::temp_directory_path() / ("device_turn_" + std::to_string(::getpid()));
  const Path file_ = folder_ / "cache" / "gpu-0.turn";
};

/// Whether another thread has had `use` while this one held what it holds.
class Other {
 public:
  Other(const Path& file, Use use)
      : thread_([this, file, use] {
          const DeviceTurn turn(file, use);
          had_ = true;
        }) {}
  bool HadIt() {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return had_;
  }
  void Join() { thread_.join(); }

 private:
  std::atomic<bool> had_ = false;
  std::thread thread_;
};

TEST_F(DeviceTurnTest, AloneIsAlone) {
  for (const Use use : {Use::kAlone, Use::kBesideOthers}) {
    auto turn = std::make_unique<DeviceTurn>(file_, Use::kAlone);
    EXPECT_TRUE(turn->held());
    Other other(file_, use);
    EXPECT_FALSE(other.HadIt());
    turn.reset();
    other.Join();
    EXPECT_TRUE(other.HadIt());
  }
}

TEST_F(DeviceTurnTest, OthersOfTheKindGoBesideEachOtherButNotBesideOneAlone) {
  auto turn = std::make_unique<DeviceTurn>(file_, Use::kBesideOthers);
  Other beside(file_, Use::kBesideOthers);
  beside.Join();
  EXPECT_TRUE(beside.HadIt());
  Other alone(file_, Use::kAlone);
  EXPECT_FALSE(alone.HadIt());
  turn.reset();
  alone.Join();
}

TEST_F(DeviceTurnTest, WhoWaitsToBeAloneIsNotPassed) {
  auto turn = std::make_unique<DeviceTurn>(file_, Use::kBesideOthers);
  Other alone(file_, Use::kAlone);
  WaitUntilOneIsNext();
  Other behind(file_, Use::kBesideOthers);
  EXPECT_FALSE(behind.HadIt());
  turn.reset();
  alone.Join();
  behind.Join();
}

TEST_F(DeviceTurnTest, ATurnEndsWithItsProcess) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const DeviceTurn turn(file_, Use::kAlone);
    (void)!::write(ready[1], "x", 1);
    ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  Other other(file_, Use::kAlone);
  EXPECT_FALSE(other.HadIt());
  ::kill(child, SIGKILL);
  other.Join();
  EXPECT_TRUE(other.HadIt());
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(DeviceTurnTest, WithoutAFileNobodyWaits) {
  const DeviceTurn none("", Use::kAlone);
  EXPECT_FALSE(none.held());
  ASSERT_TRUE(MakeFolders(folder_));
  std::filesystem::create_symlink(folder_ / "elsewhere", folder_ / "link");
  EXPECT_FALSE(DeviceTurn(folder_ / "link", Use::kAlone).held());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "elsewhere"));
  EXPECT_FALSE(DeviceTurn("/proc/no/such.turn", Use::kAlone).held());
}

}  // namespace
}  // namespace assay::engine
