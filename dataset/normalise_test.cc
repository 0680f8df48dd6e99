#include "dataset/normalise.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "dataset/tokens.h"

namespace assay::dataset {
namespace {

std::string Of(std::string_view source) { return Normalise(source, "cuda").digest; }
std::string SkeletonOf(std::string_view source) { return Normalise(source, "cuda").skeleton; }

TEST(Normalise, LayoutCommentsAndOwnNamesDoNotCount) {
  const char* const plain =
      "#define TILE 32\n"
      "template <typename T, int N>\n"
      "__device__ __forceinline__ T add(T a, const T* __restrict__ b) { return a + b[N]; }\n"
      "struct Pair { float low, high; };\n"
      "extern \"C\" __global__ void __launch_bounds__(256) row(const float* x, float* y, long long "
      "n) {\n"
      "  __shared__ float tile[TILE];\n"
      "  Pair p; p.low = x[threadIdx.x];\n"
      "  unsigned i = threadIdx.x, *q = nullptr;\n"
      "  for (int k = 0; k < n; ++k) { tile[i] = expf(p.low) * x[k]; }\n"
      "  auto [lo, hi] = p;\n"
      "  goto end;\n"
      "end:\n"
      "  y[i] = tile[0] + lo;\n"
      "}\n";
  const char* const dressed =
      "#define BLOCK 32 // tile\n\n"
      "template<typename Real,int COUNT> __device__ __forceinline__ Real plus( Real u,\n"
      "   const Real *__restrict__ v ) { return u + v[COUNT]; }\n"
      "struct Two { float first, second; };\n"
      "/* kernel */ extern \"C\" __global__ void __launch_bounds__(256)\n"
      "rows(const float *in, float *out, long long count)\n{\n"
      "  __shared__ float cache[BLOCK];\n"
      "  Two two; two.first = in[threadIdx.x];\n"
      "  unsigned t = threadIdx.x, *unused = nullptr;\n"
      "  for (int j = 0; j < count; ++j) { cache[t] = expf(two.first) * in[j]; }\n"
      "  auto [a, b] = two;\n"
      "  goto done;\n"
      "done:\n"
      "  out[t] = cache[0] + a;\n"
      "}\n";
  EXPECT_EQ(Normalise(plain, "cuda").text, Normalise(dressed, "cuda").text);
}

TEST(Normalise, WhatComputesOtherwiseIsAnother) {
  const std::string base =
      "__global__ void k(const float* x, float* y, int n) { int i = threadIdx.x; "
      "y[i] = expf(x[i]) * 2.0f; }";
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = base;
    changed.replace(changed.find(from), from.size(), to);
    return Of(changed);
  };
  EXPECT_NE(Of(base), with("expf", "logf"));
  EXPECT_NE(Of(base), with("2.0f", "2.5f"));
  EXPECT_NE(Of(base), with("threadIdx.x", "threadIdx.y"));
  EXPECT_NE(Of(base), with("x[i]) *", "x[n]) *"));
  EXPECT_NE(Of(base), with("float* y", "double* y"));
  EXPECT_NE(Of(base), with(") *", ") +"));
}

// In a product of two names neither is declared, and names from outside keep theirs.
TEST(Normalise, NamesFromOutsideAreKept) {
  for (const char* const text :
       {"float y = a * INFINITY;", "float y = fmaxf(a * FLT_MAX, b);", "if (a > INFINITY) return;",
        "y = (a * warpSize);", "v.x = w.y;", "r = cub::Sum(q);", "x = y ? INFINITY : NAN;"}) {
    const auto renamed = Normalise(text, "cuda").renamed;
    for (const char* const kept :
         {"INFINITY", "FLT_MAX", "warpSize", "x", "w", "cub", "Sum", "NAN"})
      EXPECT_FALSE(renamed.contains(kept)) << text << ": " << kept;
  }
  // A parameter of a struct's function is no member: threadIdx.x stays.
  const auto op = Normalise(
      "struct Op { float operator()(float x, float z) { return x + z; } };\n"
      "__global__ void k(float* o) { o[threadIdx.x] = 1.0f; }",
      "cuda");
  EXPECT_NE(op.text.find("threadIdx . x "), std::string::npos) << op.text;
}

TEST(Normalise, TokensOfHostileText) {
  EXPECT_TRUE(Tokenise("").empty());
  EXPECT_TRUE(Tokenise("/* never closed").empty());
  EXPECT_EQ(Tokenise("\"never closed").size(), 1u);
  EXPECT_EQ(Tokenise("R\"(a\nb)\" x").back().line, 2u);
  EXPECT_EQ(Tokenise("a // b \\\n c\nd").back().text, "d");
  EXPECT_EQ(Tokenise("0x1p-3f+1e+5").size(), 3u);
  EXPECT_EQ(Tokenise("1'000'000").size(), 1u);
  EXPECT_EQ(Tokenise("x\\\ny").size(), 2u);
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i * 37 % 256);
  Normalise(bytes, "cuda");
  Normalise(std::string(100'000, '{'), "cuda");
  Normalise(std::string(100'000, '<'), "cuda");
}

TEST(Normalise, ASkeletonIsTheFlowAlone) {
  const char* const a =
      "__global__ void k(float* x, int n) { for (int i = 0; i < n; ++i) { if (i > 3) { x[i] = 1; } "
      "} "
      "__syncthreads(); }";
  EXPECT_EQ(SkeletonOf(a), SkeletonOf("__global__ void q(double* z, int n, int m) { int j = 5; "
                                      "for (; j < m; j += 2) if (z[j] < 2.0) z[j] = sin(z[j]) * 7; "
                                      "__syncthreads(); }"));
  EXPECT_NE(SkeletonOf(a),
            SkeletonOf("__global__ void k(float* x, int n) { for (int i = 0; i < n; ++i) { "
                       "if (i > 3) { x[i] = 1; } } }"));
  EXPECT_NE(SkeletonOf("void f() { if (a) { if (b) c(); else d(); } }"),
            SkeletonOf("void f() { if (a) { if (b) c(); } else d(); }"));
}

TEST(Normalise, ASketchSeesOneBranchMore) {
  // Forty statements, no two alike.
  constexpr const char* kCalls[] = {"expf", "logf",  "sqrtf",  "sinf",
                                    "cosf", "tanhf", "rsqrtf", "fabsf"};
  constexpr const char* kSigns[] = {"+", "-", "*", "/", "%"};
  std::string a;
  for (std::size_t k = 0; k < 40; ++k) {
    a += std::string("  s ") + kSigns[k % 5] + "= " + kCalls[k % 8] + "(x[i] " +
         kSigns[(k / 8) % 5] + " w[i]);\n";
  }
  const std::string open =
      "__global__ void k(const float* x, const float* w, float* y, int n) {\n"
      "  int i = threadIdx.x; float s = 0;\n";
  const Normalised plain = Normalise(open + a + "  y[i] = s;\n}", "cuda");
  const Normalised more = Normalise(open + a + "  if (s > 1) s = 1;\n  y[i] = s;\n}", "cuda");
  EXPECT_NE(plain.skeleton, more.skeleton);
  EXPECT_GE(Likeness(plain.sketch, more.sketch), kAlike);
  const Normalised other = Normalise(
      "__global__ void k(const double* a, double* b) {\n  __shared__ double t[32][33];\n"
      "  t[threadIdx.y][threadIdx.x] = a[blockIdx.x * 32 + threadIdx.x];\n  __syncthreads();\n"
      "  b[blockIdx.x * 32 + threadIdx.y] = t[threadIdx.x][threadIdx.y];\n}",
      "cuda");
  EXPECT_LT(Likeness(plain.sketch, other.sketch), 0.3);
  EXPECT_EQ(Likeness(Sketch{}, Sketch{}), 0);
}

TEST(Normalise, LaunchPlansFollowTheKernelsNames) {
  const Normalised a = Normalise("template <int N> __global__ void first(float* x) {}", "cuda");
  const Normalised b = Normalise("template <int M> __global__ void other(float* y) {}", "cuda");
  EXPECT_EQ(NormaliseLaunch("{\"kernels\": [{\"entry\": \"first<4>\", \"args\": [\"x\"]}]}", a),
            NormaliseLaunch("{ \"kernels\":[ {\"args\":[\"x\"],\"entry\":\"other<4>\"} ] }", b));
  EXPECT_NE(NormaliseLaunch("{\"kernels\": [{\"entry\": \"first<4>\", \"args\": [\"x\"]}]}", a),
            NormaliseLaunch("{\"kernels\": [{\"entry\": \"first<8>\", \"args\": [\"x\"]}]}", a));
  EXPECT_EQ(NormaliseLaunch("not JSON", a), "not JSON");
}

TEST(Normalise, APlaceInTheSourceOutlivesItsLayout) {
  const Normalised a = Normalise("int a;\nint b;\n", "cuda");
  const Normalised b = Normalise("// note\n\nint a;\n\n/* x\n*/ int b;\n", "cuda");
  EXPECT_EQ(a.PlaceOf(2), b.PlaceOf(6));
  EXPECT_NE(a.PlaceOf(1), b.PlaceOf(6));
}

TEST(Normalise, OtherLanguagesAreLines) {
  EXPECT_EQ(Normalise("a  \n\n b\n", "triton").digest, Normalise("a\n b", "triton").digest);
  EXPECT_NE(Normalise("a\nb", "triton").digest, Normalise("a\n b", "triton").digest);
}

// The library's own kernels: whatever their names are, renaming every one that is found declared
// leaves the normalised text as it is.
TEST(Normalise, RenamingRealKernelsChangesNothing) {
  int kernels = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(ASSAY_SOURCE_DIR "/corpus")) {
    if (entry.path().extension() != ".cu") continue;
    // Those put names together from pieces and hide them in strings: they cannot be renamed.
    if (entry.path().string().find("/adversarial/fingerprint/") != std::string::npos) continue;
    const std::string source = *ReadFile(entry.path());
    const Normalised before = Normalise(source, "cuda");
    std::string changed;
    std::size_t at = 0;
    bool clash = false;
    for (const Token& token : Tokenise(source)) {
      const auto begin = static_cast<std::size_t>(token.text.data() - source.data());
      changed += source.substr(at, begin - at);
      at = begin + token.text.size();
      const bool own =
          token.kind == TokenKind::kWord && before.renamed.contains(std::string(token.text));
      // x may be a variable here and a member of threadIdx there.
      const bool member = (begin > 0 && source[begin - 1] == '.') ||
                          (begin > 1 && source.compare(begin - 2, 2, "->") == 0);
      clash = clash || (own && member);
      changed += own && !member ? "q_" + std::string(token.text) : std::string(token.text);
    }
    changed += source.substr(at);
    if (clash) continue;
    EXPECT_EQ(Normalise(changed, "cuda").text, before.text) << entry.path();
    EXPECT_GT(before.renamed.size(), 1u) << entry.path();
    ++kernels;
  }
  EXPECT_GT(kernels, 20);
}

}  // namespace
}  // namespace assay::dataset
