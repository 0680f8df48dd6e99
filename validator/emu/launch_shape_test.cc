// Bounds that a kernel carries in its module against the launch: taken over, obeyed, or refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "validator/emu/test_support.h"

namespace assay::emu {
namespace {

using Policy = Schedule::Policy;

/// Every thread adds one to seen[its block], in order of x, y, z; a block's first thread writes
/// 1000 * size of its cluster + its rank to cluster[block].
std::string Marks(const std::string& directives) {
  return R"(.version 9.0
.target sm_90
.address_size 64
.visible .entry marks(.param .u64 seen, .param .u64 cluster)
)" + directives +
         R"(
{
  .reg .pred %p<2>;
  .reg .b32 %r<20>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [seen];
  ld.param.u64 %rd2, [cluster];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ctaid.y;
  mov.u32 %r3, %ctaid.z;
  mov.u32 %r4, %nctaid.x;
  mov.u32 %r5, %nctaid.y;
  mad.lo.u32 %r6, %r3, %r5, %r2;
  mad.lo.u32 %r6, %r6, %r4, %r1;
  mul.wide.u32 %rd3, %r6, 4;
  add.s64 %rd4, %rd1, %rd3;
  red.global.add.u32 [%rd4], 1;
  mov.u32 %r7, %tid.x;
  mov.u32 %r8, %tid.y;
  mov.u32 %r9, %tid.z;
  or.b32 %r7, %r7, %r8;
  or.b32 %r7, %r7, %r9;
  setp.ne.s32 %p1, %r7, 0;
  @%p1 ret;
  mov.u32 %r10, %cluster_nctarank;
  mov.u32 %r11, %cluster_ctarank;
  mad.lo.u32 %r12, %r10, 1000, %r11;
  add.s64 %rd5, %rd2, %rd3;
  st.global.u32 [%rd5], %r12;
  ret;
}
)";
}

struct Ran {
  Report report;
  std::vector<double> seen, cluster;
};

Ran RunMarks(const std::string& directives, const Launch& shape,
             Policy policy = Policy::kSequential, std::size_t places = 256) {
  TestRun run(Marks(directives));
  const std::uint32_t seen = run.Zeros("seen", DType::kU32, static_cast<std::int64_t>(places));
  const std::uint32_t cluster =
      run.Zeros("cluster", DType::kU32, static_cast<std::int64_t>(places));
  Launch& launch =
      run.AddLaunch("marks", shape.grid, shape.block, {TestRun::Ptr(seen), TestRun::Ptr(cluster)});
  launch.cluster = shape.cluster;
  launch.cooperative = shape.cooperative;
  launch.only = shape.only;
  launch.threads = shape.threads;
  run.execution.schedule = {policy, 5};
  Ran ran{.report = run.Run(), .seen = {}, .cluster = {}};
  for (std::size_t i = 0; i < places; ++i) {
    ran.seen.push_back(run.At(seen, i));
    ran.cluster.push_back(run.At(cluster, i));
  }
  return ran;
}

Launch Shape(Dim3 grid, Dim3 block, Dim3 cluster = {1, 1, 1}) {
  Launch launch;
  launch.grid = grid;
  launch.block = block;
  launch.cluster = cluster;
  return launch;
}

struct Case {
  const char* directives;
  Launch shape;
  const char* problem;  ///< Empty: it runs.
};

TEST(LaunchShape, BoundsOfTheModuleAndTheLaunchAreReconciled) {
  const Dim3 warp{32, 1, 1};
  const Case kCases[] = {
      {"", Shape({8, 1, 1}, warp), ""},
      {"", Shape({8, 1, 1}, warp, {4, 1, 1}), ""},
      {"", Shape({6, 1, 1}, warp, {4, 1, 1}), "not a multiple of the cluster"},
      {"", Shape({32, 1, 1}, warp, {32, 1, 1}), "beyond the limit of 16"},
      {".explicitcluster .reqnctapercluster 4", Shape({8, 1, 1}, warp), ""},
      {".explicitcluster .reqnctapercluster 4", Shape({8, 1, 1}, warp, {4, 1, 1}), ""},
      {".explicitcluster .reqnctapercluster 4", Shape({8, 1, 1}, warp, {2, 1, 1}),
       "compiled for clusters of 4 x 1 x 1"},
      {".reqnctapercluster 2, 2", Shape({4, 4, 1}, warp), ""},
      {".reqnctapercluster 2, 2", Shape({4, 4, 1}, warp, {4, 1, 1}),
       "compiled for clusters of 2 x 2"},
      {".reqnctapercluster 4", Shape({6, 1, 1}, warp), "not a multiple of the cluster"},
      {".reqnctapercluster 65536, 65536", Shape({8, 1, 1}, warp), "beyond the limit of 16"},
      {".explicitcluster", Shape({8, 1, 1}, warp), "must be launched with a cluster"},
      {".explicitcluster", Shape({8, 1, 1}, warp, {2, 1, 1}), ""},
      {".maxclusterrank 4", Shape({8, 1, 1}, warp, {4, 1, 1}), ""},
      {".maxclusterrank 4", Shape({8, 1, 1}, warp, {8, 1, 1}), "bounded to 4 blocks a cluster"},
      {".maxntid 64", Shape({2, 1, 1}, {8, 8, 1}), ""},
      {".maxntid 64", Shape({2, 1, 1}, {65, 1, 1}), "bounded to 64 threads"},
      {".maxntid 4294967295, 4294967295, 4294967295", Shape({2, 1, 1}, warp), ""},
      {".reqntid 32", Shape({2, 1, 1}, warp), ""},
      {".reqntid 32", Shape({2, 1, 1}, {8, 4, 1}), "compiled for blocks of 32 x 1 x 1"},
      {".reqntid 8, 4", Shape({2, 1, 1}, {8, 4, 1}), ""},
      {".reqntid 8, 4", Shape({2, 1, 1}, {4, 8, 1}), "compiled for blocks of 8 x 4 x 1"},
      {".maxntid 128 .minnctapersm 4 .maxnreg 32", Shape({2, 1, 1}, warp), ""},
      {"", Shape({2, 1, 1}, {2147483648u, 2147483648u, 4}), "beyond the limit of 1024"},
      {"", Shape({2, 1, 1}, {0, 1, 1}), "at least one"},
      {"", Shape({2, 65536, 1}, warp), "beyond the device's limits"},
      {"", Shape({131072, 16513, 1}, warp), "more blocks than are numbered here"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << c.directives << " -> " << c.problem);
    const Ran ran = RunMarks(c.directives, c.shape);
    if (*c.problem == '\0') {
      EXPECT_EQ(ran.report.stop, Stop::kCompleted) << Show(ran.report);
      EXPECT_TRUE(ran.report.findings.empty()) << Show(ran.report);
      continue;
    }
    ASSERT_EQ(ran.report.findings.size(), 1u) << Show(ran.report);
    EXPECT_EQ(ran.report.findings[0].kind, FindingKind::kLaunchFailure);
    EXPECT_THAT(ran.report.findings[0].message, testing::HasSubstr(c.problem));
    ASSERT_EQ(ran.report.findings[0].accesses.size(), 1u);
    EXPECT_EQ(ran.report.findings[0].accesses[0].site.ptx_line, 4u) << "the kernel's declaration";
  }
}

TEST(LaunchShape, TheModulesClusterIsTheOneThatRuns) {
  const Ran ran =
      RunMarks(".explicitcluster .reqnctapercluster 2, 2, 1", Shape({4, 2, 1}, {32, 1, 1}));
  ASSERT_EQ(ran.report.stop, Stop::kCompleted) << Show(ran.report);
  const double kExpected[] = {4000, 4001, 4000, 4001, 4002, 4003, 4002, 4003};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(ran.cluster[i], kExpected[i]) << i;
}

TEST(LaunchShape, ABlockThatIsAskedForBringsItsCluster) {
  Launch shape = Shape({8, 2, 1}, {32, 1, 1});
  shape.only = {{0, 1}, {1, 1}, {13, 3}};
  const Ran ran = RunMarks(".reqnctapercluster 2, 2", shape);
  ASSERT_EQ(ran.report.stop, Stop::kCompleted) << Show(ran.report);
  for (std::size_t i = 0; i < 16; ++i) {
    const std::size_t x = i % 8;
    EXPECT_EQ(ran.seen[i], x < 2 || x >= 4 ? 32 : 0) << i;
  }
}

TEST(LaunchShape, ThreadsThatAreAskedForRunInEachBlock) {
  Launch shape = Shape({3, 1, 1}, {8, 12, 1});
  shape.threads = {{0, 1}, {40, 3}, {95, 32}, {~std::uint64_t{0}, ~std::uint64_t{0}}};
  const Ran ran = RunMarks("", shape);
  ASSERT_EQ(ran.report.stop, Stop::kCompleted) << Show(ran.report);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(ran.seen[i], i < 3 ? 5 : 0) << i;
  EXPECT_EQ(ran.report.launch_steps, (std::vector<std::uint64_t>{ran.report.counters.steps}));
}

TEST(LaunchShape, DirectivesThatContradictAreRefused) {
  for (const char* const directives :
       {".maxntid 0", ".reqntid 32, 0", ".maxnreg 0", ".minnctapersm 0", ".reqnctapercluster 0",
        ".maxntid 64 .reqntid 64", ".reqnctapercluster 4 .maxclusterrank 4",
        ".reqntid 32 .reqntid 32", ".reqntid 32 .reqnctapercluster 2 .blocksareclusters"}) {
    const auto program = Program::Load(Marks(directives));
    ASSERT_FALSE(program) << directives;
    EXPECT_THAT(ToString(program.error()), testing::HasSubstr("kernel.ptx:5")) << directives;
  }
}

/// Whatever the module and the launch say, the run ends in order: all blocks once, or refused.
TEST(LaunchShape, NoCombinationGetsOutOfHand) {
  constexpr std::uint32_t kSizes[] = {1, 1, 1, 2, 2, 3, 4, 8, 16, 17, 65536, 4294967295u};
  constexpr Policy kPolicies[] = {Policy::kSequential, Policy::kPermuted, Policy::kReversed,
                                  Policy::kPriorities};
  int completed = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Rng rng(seed);
    const auto pick = [&](std::uint64_t most) { return kSizes[rng.Below(most)]; };
    const auto extents = [&](std::uint64_t most) {
      return Dim3{pick(most), pick(most), pick(most)};
    };
    const auto bound = [&](const char* name, std::uint64_t most) {
      const Dim3 e = extents(most);
      return fmt::format("{} {}, {}, {}\n", name, e[0], e[1], e[2]);
    };
    const std::uint64_t most = rng.Below(20) == 0 ? std::size(kSizes) : 7;
    std::string directives;
    if (rng.Below(4) == 0) directives += bound(rng.Below(2) == 0 ? ".maxntid" : ".reqntid", most);
    if (rng.Below(2) == 0) {
      directives += rng.Below(4) == 0 ? fmt::format(".maxclusterrank {}\n", pick(most))
                                      : bound(".reqnctapercluster", most);
    }
    if (rng.Below(3) == 0) directives += ".explicitcluster\n";
    Launch shape =
        Shape(extents(most), extents(most), rng.Below(2) == 0 ? Dim3{1, 1, 1} : extents(most));
    shape.cooperative = rng.Below(4) == 0;
    for (std::uint64_t i = rng.Below(3); i > 0 && rng.Below(3) == 0; --i)
      shape.only.push_back({rng.Below(20), rng.Below(2) == 0 ? rng.Below(4) : ~std::uint64_t{0}});
    const Ran ran = RunMarks(directives, shape, kPolicies[rng.Below(4)]);
    SCOPED_TRACE(testing::Message() << seed << ": " << directives << Show(ran.report));
    if (ran.report.stop == Stop::kFault) {
      ASSERT_EQ(ran.report.findings.size(), 1u);
      ASSERT_EQ(ran.report.findings[0].kind, FindingKind::kLaunchFailure);
      continue;
    }
    ASSERT_EQ(ran.report.stop, Stop::kCompleted);
    ++completed;
    const double threads = shape.block[0] * shape.block[1] * shape.block[2];
    const std::size_t blocks = std::size_t{shape.grid[0]} * shape.grid[1] * shape.grid[2];
    for (std::size_t i = 0; i < ran.seen.size(); ++i) {
      if (shape.only.empty())
        ASSERT_EQ(ran.seen[i], i < blocks ? threads : 0) << i;
      else
        ASSERT_TRUE(ran.seen[i] == 0 || (i < blocks && ran.seen[i] == threads)) << i;
    }
  }
  EXPECT_GT(completed, 300);
}

/// Each block leaves its rank with the peer behind it in its cluster, which reads it: behind the
/// cluster's barrier, or not.
std::string Neighbours(bool barrier) {
  const std::string meet =
      barrier ? "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n" : "";
  return R"(.version 9.0
.target sm_90
.address_size 64
.visible .entry neighbours(.param .u64 out)
.explicitcluster
.reqnctapercluster 2, 2, 1
{
  .reg .b32 %r<20>;
  .reg .b64 %rd<8>;
  .shared .align 4 .u32 box;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %cluster_ctarank;
  mov.u32 %r2, %cluster_nctarank;
  add.u32 %r3, %r1, 1;
  rem.u32 %r3, %r3, %r2;
  mov.u32 %r4, box;
  mapa.shared::cluster.u32 %r5, %r4, %r3;
  st.shared::cluster.u32 [%r5], %r1;
)" + meet +
         R"(  ld.shared.u32 %r6, [box];
  mov.u32 %r7, %ctaid.x;
  mov.u32 %r8, %ctaid.y;
  mov.u32 %r9, %nctaid.x;
  mad.lo.u32 %r10, %r8, %r9, %r7;
  mul.wide.u32 %rd2, %r10, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r6;
)" + meet +
         "  ret;\n}\n";
}

TEST(LaunchShape, ABarrierOrdersClustersOfTwoDimensions) {
  for (const bool barrier : {true, false}) {
    TestRun run(Neighbours(barrier));
    const std::uint32_t out = run.Zeros("out", DType::kU32, 8);
    run.AddLaunch("neighbours", {4, 2, 1}, {1, 1, 1}, {TestRun::Ptr(out)});
    const Report report = run.Run();
    EXPECT_EQ(HasFinding(report, FindingKind::kDataRace), !barrier) << Show(report);
    if (!barrier) continue;
    EXPECT_EQ(report.stop, Stop::kCompleted) << Show(report);
    EXPECT_TRUE(report.findings.empty()) << Show(report);
    const double kBefore[] = {3, 0, 3, 0, 1, 2, 1, 2};
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(run.At(out, i), kBefore[i]) << i;
  }
}

}  // namespace
}  // namespace assay::emu
