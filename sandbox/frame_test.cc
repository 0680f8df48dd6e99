#include "sandbox/frame.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "base/rng.h"
#include "base/shared_memory.h"

namespace assay::sandbox {
namespace {

using testing::HasSubstr;

Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

SocketPair Pair() {
  auto pair = MakeSocketPair();
  EXPECT_TRUE(pair);
  return *std::move(pair);
}

/// A frame as bytes, with sizes that may lie.
std::string Bytes(std::string_view header, std::string_view payload, std::uint32_t header_bytes,
                  std::uint64_t payload_bytes, std::uint32_t fds = 0) {
  std::string bytes = "ASY1";
  const auto append = [&bytes](const auto& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  append(header_bytes);
  append(payload_bytes);
  append(fds);
  append(std::uint32_t{0});
  bytes += header;
  bytes += payload;
  return bytes;
}

std::string Good(std::string_view header, std::string_view payload) {
  return Bytes(header, payload, static_cast<std::uint32_t>(header.size()), payload.size());
}

/// What a reader makes of raw bytes followed by the end of the stream.
std::expected<Message, FrameFault> Read(std::string_view bytes, FrameLimits limits = {}) {
  SocketPair pair = Pair();
  EXPECT_EQ(::write(pair.theirs.get(), bytes.data(), bytes.size()),
            static_cast<ssize_t>(bytes.size()));
  pair.theirs.Reset();
  return Receive(pair.ours.get(), limits, Soon());
}

TEST(Frame, RoundTripKeepsHeaderAndPayload) {
  SocketPair pair = Pair();
  const Json header{{"action", "echo"}, {"n", 3}};
  const std::string payload("a\0b", 3);
  ASSERT_TRUE(Send(pair.ours.get(), header, payload, {}, Soon()));
  const auto message = Receive(pair.theirs.get(), {}, Soon());
  ASSERT_TRUE(message) << message.error().detail;
  EXPECT_EQ(message->header, header);
  EXPECT_EQ(message->payload, payload);
  EXPECT_TRUE(message->fds.empty());
}

TEST(Frame, LargePayloadsFlowWhileTheOtherSideReads) {
  SocketPair pair = Pair();
  const std::string payload(20u << 20, 'p');
  std::thread sender(
      [&] { EXPECT_TRUE(Send(pair.ours.get(), Json::object(), payload, {}, Soon())); });
  const auto message = Receive(pair.theirs.get(), {}, Soon());
  sender.join();
  ASSERT_TRUE(message) << message.error().detail;
  EXPECT_EQ(message->payload, payload);
}

TEST(Frame, DescriptorsArriveAsNewOnes) {
  SocketPair pair = Pair();
  auto memory = SharedMemory::Create(4096);
  ASSERT_TRUE(memory);
  memory->bytes()[0] = std::byte{42};
  const std::vector<int> fds{memory->fd(), memory->fd()};
  ASSERT_TRUE(Send(pair.ours.get(), Json::object(), "x", fds, Soon()));
  auto message = Receive(pair.theirs.get(), {}, Soon());
  ASSERT_TRUE(message) << message.error().detail;
  ASSERT_EQ(message->fds.size(), 2u);
  EXPECT_NE(message->fds[0].get(), message->fds[1].get());
  EXPECT_NE(::fcntl(message->fds[0].get(), F_GETFD) & FD_CLOEXEC, 0);
  auto mapped =
      SharedMemory::Map(std::move(message->fds[0]), 4096, SharedMemory::Access::kReadWrite);
  ASSERT_TRUE(mapped);
  EXPECT_EQ(mapped->bytes()[0], std::byte{42});
}

TEST(Frame, UnannouncedDescriptorsAreRefused) {
  SocketPair pair = Pair();
  const std::vector<int> fds{pair.ours.get()};
  ASSERT_TRUE(Send(pair.ours.get(), Json::object(), {}, fds, Soon()));
  const auto message = Receive(pair.theirs.get(), {.fds = 0}, Soon());
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().kind, FrameFaultKind::kMalformed);
}

TEST(Frame, FewerDescriptorsThanAnnouncedAreRefused) {
  const auto message = Read(Bytes("{}", "", 2, 0, 3));
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().kind, FrameFaultKind::kMalformed);
  EXPECT_THAT(message.error().detail, HasSubstr("3 descriptors announced, 0 received"));
}

TEST(Frame, ManyDescriptorsDoNotLeak) {
  SocketPair pair = Pair();
  const auto lowest = [] {
    const int fd = ::dup(0);
    ::close(fd);
    return fd;
  };
  const int before = lowest();
  const std::string bytes = Good("{}", "");
  std::vector<int> fds(200, pair.ours.get());
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  std::vector<char> control(CMSG_SPACE(fds.size() * sizeof(int)));
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* c = CMSG_FIRSTHDR(&header);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
  std::memcpy(CMSG_DATA(c), fds.data(), fds.size() * sizeof(int));
  ASSERT_GT(::sendmsg(pair.ours.get(), &header, 0), 0);
  const auto message = Receive(pair.theirs.get(), {}, Soon());
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().kind, FrameFaultKind::kMalformed);
  EXPECT_EQ(lowest(), before);
}

TEST(Frame, OversizeIsRefusedBeforeItIsRead) {
  EXPECT_THAT(Read(Bytes("", "", 0xffffffff, 0)).error().detail, HasSubstr("header of"));
  EXPECT_THAT(Read(Bytes("{}", "", 2, ~std::uint64_t{0})).error().detail, HasSubstr("payload of"));
  EXPECT_THAT(Read(Bytes("{}", "", 2, 0, 17)).error().detail, HasSubstr("17 descriptors"));
  EXPECT_THAT(Read(Good("{}", "12345"), {.payload_bytes = 4}).error().detail, HasSubstr("payload"));
}

TEST(Frame, HugeAnnouncementsCostNoMemory) {
  // A payload within the limits that never comes: the reader waits with a buffer, it does not
  // allocate 250 MB.
  FrameReader reader;
  SocketPair pair = Pair();
  const std::string bytes = Bytes("{}", "only this", 2, 250u << 20);
  ASSERT_GT(::write(pair.theirs.get(), bytes.data(), bytes.size()), 0);
  const auto step = reader.Step(pair.ours.get());
  ASSERT_TRUE(step);
  EXPECT_FALSE(step->has_value());
}

TEST(Frame, EveryTruncationIsNoticed) {
  const std::string whole = Good(R"({"a":1})", "payload");
  EXPECT_TRUE(Read(whole));
  EXPECT_EQ(Read("").error().kind, FrameFaultKind::kClosed);
  for (std::size_t length = 1; length < whole.size(); ++length) {
    const auto message = Read(std::string_view(whole).substr(0, length));
    ASSERT_FALSE(message) << length;
    EXPECT_EQ(message.error().kind, FrameFaultKind::kTruncated) << length;
  }
}

TEST(Frame, EveryPieceSizeIsAssembled) {
  const std::string whole = Good(R"({"a":1})", "payload");
  for (std::size_t piece = 1; piece < whole.size(); ++piece) {
    SocketPair pair = Pair();
    FrameReader reader;
    for (std::size_t at = 0; at < whole.size(); at += piece) {
      const std::string_view part = std::string_view(whole).substr(at, piece);
      ASSERT_EQ(::write(pair.theirs.get(), part.data(), part.size()),
                static_cast<ssize_t>(part.size()));
      const auto step = reader.Step(pair.ours.get());
      ASSERT_TRUE(step);
      ASSERT_EQ(step->has_value(), at + piece >= whole.size());
    }
  }
}

TEST(Frame, HeadersThatAreNoObjectsAreRefused) {
  for (const char* header :
       {"", "null", "[1]", "{\"a\":}", "{\"a\":1,\"a\":2}", "{} {}", "\xff", "7"}) {
    const auto message = Read(Good(header, "p"));
    ASSERT_FALSE(message) << header;
    EXPECT_EQ(message.error().kind, FrameFaultKind::kMalformed) << header;
  }
  const std::string deep = "{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}";
  EXPECT_FALSE(Read(Good(deep, "")));
}

TEST(Frame, RandomBytesNeverPass) {
  Rng rng(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = Good(R"({"id":1,"body":{}})", "payload");
    const std::uint64_t flips = 1 + rng.Below(4);
    for (std::uint64_t i = 0; i < flips; ++i) {
      bytes[rng.Below(24)] = static_cast<char>(rng.Below(256));
    }
    if (rng.Below(2) == 0) bytes.resize(rng.Below(bytes.size()));
    // Whatever comes out, it comes out: no crash, no hang, no wild allocation.
    const auto message = Read(bytes);
    EXPECT_TRUE(!message || message->payload.size() <= bytes.size());
  }
}

TEST(Frame, DeadlineEndsTheWait) {
  SocketPair pair = Pair();
  const auto now = std::chrono::steady_clock::now();
  EXPECT_EQ(Receive(pair.ours.get(), {}, now).error().kind, FrameFaultKind::kTimedOut);
  // A peer that does not read: the socket's buffer fills.
  const std::string payload(64u << 20, 'p');
  EXPECT_EQ(Send(pair.ours.get(), Json::object(), payload, {}, now).error().kind,
            FrameFaultKind::kTimedOut);
}

TEST(Frame, SendingToADeadPeerIsAFaultNotASignal) {
  SocketPair pair = Pair();
  pair.theirs.Reset();
  EXPECT_EQ(Send(pair.ours.get(), Json::object(), "x", {}, Soon()).error().kind,
            FrameFaultKind::kClosed);
}

}  // namespace
}  // namespace assay::sandbox
