// Time, injected: tests use a fake, records carry wall-clock stamps, limits use the steady one.
#pragma once

#include <chrono>
#include <string>

namespace assay {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::chrono::steady_clock::time_point Now() = 0;
  /// "2026-01-31T12:00:00.123Z"
  virtual std::string Timestamp() = 0;
  virtual void Sleep(std::chrono::milliseconds duration) = 0;
};

/// The machine's clock.
class SystemClock final : public Clock {
 public:
  std::chrono::steady_clock::time_point Now() override;
  std::string Timestamp() override;
  void Sleep(std::chrono::milliseconds duration) override;
};

/// A clock that moves only when told (or by Sleep, which returns at once).
class FakeClock final : public Clock {
 public:
  std::chrono::steady_clock::time_point Now() override { return now_; }
  std::string Timestamp() override { return "2000-01-01T00:00:00.000Z"; }
  void Sleep(std::chrono::milliseconds duration) override { now_ += duration; }
  void Advance(std::chrono::milliseconds duration) { now_ += duration; }

 private:
  std::chrono::steady_clock::time_point now_{};
};

}  // namespace assay
