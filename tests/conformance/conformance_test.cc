// The emulator's instruction handlers against what an H200 returned.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>

#include "tests/conformance/forms.h"
#include "tests/conformance/harness.h"
#include "tests/conformance/inputs.h"
#include "tests/conformance/recorded.h"
#include "validator/emu/semantics/matrix.h"
#include "validator/emu/semantics/matrix_layout.h"

namespace assay::conformance {
namespace {

using u64 = std::uint64_t;
class Conformance : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto recorded = ReadRecorded(std::string(ASSAY_SOURCE_DIR) + "/tests/conformance/");
    ASSERT_TRUE(recorded) << ToString(recorded.error());
    all_ = std::move(*recorded);
  }
  static std::vector<Recorded> all_;
};
std::vector<Recorded> Conformance::all_;

std::string Describe(const Recorded& recorded, const Outputs& outputs, std::size_t thread) {
  std::string text = "  thread " + std::to_string(thread) + ":";
  char buffer[32];
  for (const auto& lanes : recorded.inputs) {
    std::snprintf(buffer, sizeof buffer, " %llx", static_cast<unsigned long long>(lanes[thread]));
    text += buffer;
  }
  text += " -> emulator";
  for (const auto& lanes : outputs.values) {
    std::snprintf(buffer, sizeof buffer, " %llx", static_cast<unsigned long long>(lanes[thread]));
    text += buffer;
  }
  text += ", hardware";
  for (const auto& lanes : recorded.outputs) {
    std::snprintf(buffer, sizeof buffer, " %llx", static_cast<unsigned long long>(lanes[thread]));
    text += buffer;
  }
  return text + "\n";
}

TEST_F(Conformance, HandlersAgreeWithHardware) {
  int exact = 0;
  int approximate = 0;
  int tensor = 0;
  int failed = 0;
  std::map<std::string, int> uncovered;
  for (const Recorded& recorded : all_) {
    if (recorded.form.layout_probe || recorded.form.wgmma) continue;
    const auto run = RunForm(recorded.form, recorded.inputs);
    ASSERT_TRUE(run) << recorded.form.name << ": " << ToString(run.error());
    if (!run->covered) {
      ++uncovered[run->uncovered];
      continue;
    }
    const std::vector<std::string> kinds = FlatKinds(recorded.form.destinations);
    int mismatches = 0;
    std::string detail;
    for (std::size_t thread = 0; thread < static_cast<std::size_t>(recorded.form.threads);
         ++thread) {
      bool agrees = true;
      for (std::size_t r = 0; r < kinds.size(); ++r) {
        const u64 emulated = run->values[r][thread];
        const u64 hardware = recorded.outputs[r][thread];
        if (emulated == hardware) continue;
        agrees = Within(recorded.form, kinds[r], emulated, hardware, recorded.inputs[0][thread]);
        if (!agrees) break;
      }
      if (!agrees && mismatches++ < 3) detail += Describe(recorded, *run, thread);
    }
    if (mismatches != 0) {
      ++failed;
      ADD_FAILURE() << recorded.form.name << ": " << mismatches << " of " << recorded.form.threads
                    << " differ\n"
                    << detail;
      continue;
    }
    const bool bounded = recorded.form.bound.approximate() && kinds[0] == "f64";
    ++(recorded.form.bound.tensor ? tensor : bounded ? approximate : exact);
  }
  std::printf(
      "conformant with an H200: %d forms (%d exact, %d approximate within their bound, %d "
      "tensor-core); %d differ\n",
      exact + approximate + tensor, exact, approximate, tensor, failed);
  for (const auto& [mnemonic, count] : uncovered)
    std::printf("left to emulator_test, as lanes wait for each other: %s (%d forms)\n",
                mnemonic.c_str(), count);
}

/// wgmma's arithmetic and fragments, which the emulator's core puts together with descriptors and
/// shared memory.
TEST_F(Conformance, WarpgroupProductsAgreeWithHardware) {
  const std::map<std::string, emu::TensorType> types = {{"f16", emu::TensorType::kF16},
                                                        {"bf16", emu::TensorType::kBF16},
                                                        {"tf32", emu::TensorType::kTF32},
                                                        {"e4m3", emu::TensorType::kE4M3},
                                                        {"e5m2", emu::TensorType::kE5M2}};
  int forms = 0;
  for (const Recorded& recorded : all_) {
    if (!recorded.form.wgmma) continue;
    // $wgmma.m64n8kK.D.A.B
    std::vector<std::string> parts;
    std::string part;
    for (const char c : recorded.form.name.substr(0, recorded.form.name.find(' ')) + ".") {
      if (c != '.') {
        part += c;
      } else {
        parts.push_back(std::move(part));
        part.clear();
      }
    }
    const int k = std::stoi(parts[1].substr(parts[1].find('k') + 1));
    const int bits =
        256 / k;  // The elements of B's rows of 16 bytes, of which there are two along k.
    const int per_register = 32 / bits;
    const int accumulators = recorded.form.destinations[0].vector;
    const bool half = parts[2] == "f16";
    const bool integer = parts[2] == "s32";
    std::vector<std::uint32_t> a(static_cast<std::size_t>(64 * k));
    std::vector<std::uint32_t> b(static_cast<std::size_t>(8 * k));
    std::vector<std::uint32_t> c(64 * 8);
    const auto mask = static_cast<std::uint32_t>((u64{1} << bits) - 1);
    const auto element = [&](u64 word, int e) {
      return static_cast<std::uint32_t>(word >> (bits * e)) & mask;
    };
    for (int thread = 0; thread < 128; ++thread) {
      const auto at = static_cast<std::size_t>(thread);
      for (int e = 0; e < 4 * per_register; ++e) {
        const emu::MatrixPlace place = emu::WgmmaOperandPlace(thread / 32, thread % 32, e, k, bits);
        a[static_cast<std::size_t>(place.column * 64 + place.row)] = element(
            recorded.inputs[static_cast<std::size_t>(e / per_register)][at], e % per_register);
      }
      for (int i = 0; i < 4; ++i) {
        const emu::MatrixPlace place = emu::WgmmaAccumulatorPlace(thread / 32, thread % 32, i);
        const u64 word = recorded.inputs[static_cast<std::size_t>(4 + (half ? i / 2 : i))][at];
        c[static_cast<std::size_t>(place.column * 64 + place.row)] =
            static_cast<std::uint32_t>(half ? word >> (16 * (i % 2)) & 0xffff : word);
      }
      if (thread >= 64) continue;
      for (int e = 0; e < per_register; ++e) {
        const int row = thread % 32 / 4;
        const int column = per_register * (thread % 4) + e + thread / 32 * 4 * per_register;
        b[static_cast<std::size_t>(row * k + column)] =
            element(recorded.inputs[static_cast<std::size_t>(4 + accumulators)][at], e);
      }
    }
    std::vector<std::uint32_t> d(64 * 8);
    if (integer) {
      std::vector<std::int32_t> wide_a, wide_b, wide_c(c.begin(), c.end()), wide_d(64 * 8);
      for (const std::uint32_t x : a)
        wide_a.push_back(parts[3] == "s8" ? static_cast<std::int8_t>(x)
                                          : static_cast<std::int32_t>(x));
      for (const std::uint32_t x : b) wide_b.push_back(static_cast<std::int8_t>(x));
      emu::TensorMultiplyInteger(64, 8, k, false, wide_a.data(), wide_b.data(), wide_c.data(),
                                 wide_d.data());
      d.assign(wide_d.begin(), wide_d.end());
    } else {
      emu::TensorProduct product{
          .m = 64, .n = 8, .k = k, .a = types.at(parts[3]), .b = types.at(parts[4])};
      product.warpgroup = true;
      product.half_accumulator = product.half_result = half;
      emu::TensorMultiply(product, a.data(), b.data(), c.data(), d.data());
    }
    int differ = 0;
    for (int thread = 0; thread < 128; ++thread) {
      for (int i = 0; i < 4; ++i) {
        const emu::MatrixPlace place = emu::WgmmaAccumulatorPlace(thread / 32, thread % 32, i);
        const u64 word = recorded.outputs[static_cast<std::size_t>(half ? i / 2 : i)]
                                         [static_cast<std::size_t>(thread)];
        const u64 hardware = half ? word >> (16 * (i % 2)) & 0xffff : word;
        const u64 emulated = d[static_cast<std::size_t>(place.column * 64 + place.row)];
        if (emulated == hardware) continue;
        if (differ++ < 4) {
          ADD_FAILURE() << recorded.form.name << " thread " << thread << " element " << i
                        << ": emulator " << std::hex << emulated << ", hardware " << hardware;
        }
      }
    }
    EXPECT_EQ(differ, 0) << recorded.form.name;
    ++forms;
  }
  std::printf("wgmma: %d forms\n", forms);
}

/// wmma.load and ldmatrix: every lane holds the elements that matrix_layout.h says.
TEST_F(Conformance, FragmentLayoutsAgreeWithHardware) {
  int probes = 0;
  for (const Recorded& recorded : all_) {
    if (!recorded.form.layout_probe) continue;
    const std::string& name = recorded.form.name;
    if (name.starts_with("ldmatrix")) {
      const bool transposed = name.find(".trans") != std::string::npos;
      for (int lane = 0; lane < 32; ++lane) {
        for (int matrix = 0; matrix < static_cast<int>(recorded.outputs.size()); ++matrix) {
          for (int e = 0; e < 2; ++e) {
            const emu::MatrixPlace place = emu::LdmatrixPlace(lane, e, transposed);
            const u64 word =
                recorded.outputs[static_cast<std::size_t>(matrix)][static_cast<std::size_t>(lane)];
            EXPECT_EQ(word >> (16 * e) & 0xffff,
                      static_cast<u64>(64 * matrix + 8 * place.row + place.column))
                << name;
          }
        }
      }
      ++probes;
      continue;
    }
    int m = 0, n = 0, k = 0;
    const std::size_t shape = name.find(".m");
    ASSERT_EQ(std::sscanf(name.c_str() + shape, ".m%dn%dk%d", &m, &n, &k), 3) << name;
    const std::size_t type_at = name.find('.', shape + 2) + 1;
    const std::string type = name.substr(type_at, name.find(' ', type_at) - type_at);
    const char role_letter = name[std::string("wmma.load.").size()];
    const emu::Role role = role_letter == 'a'   ? emu::Role::kA
                           : role_letter == 'b' ? emu::Role::kB
                                                : emu::Role::kAccumulator;
    const bool by_rows = name.find(".row.") != std::string::npos;
    const int stride = std::atoi(name.c_str() + name.find("], ") + 3);
    const std::map<std::string, int> widths = {{"f16", 16}, {"bf16", 16}, {"tf32", 32}, {"f32", 32},
                                               {"f64", 64}, {"s32", 32},  {"u8", 8},    {"s8", 8}};
    if (!widths.contains(type) ||
        stride < (by_rows ? (role == emu::Role::kA ? k : n) : (role == emu::Role::kB ? k : m)))
      continue;
    const int bits = widths.at(type);
    const emu::Fragment fragment = type == "bf16" ? emu::WmmaBf16Fragment(role, m, n, k)
                                                  : emu::WmmaFragment(role, m, n, k, bits);
    ASSERT_EQ(fragment.registers, recorded.form.destinations[0].vector) << name;
    const int shift = name.find("$mem8h") != std::string::npos ? 8 : 0;
    const u64 mask = bits == 64 ? ~u64{0} : (u64{1} << bits) - 1;
    for (int lane = 0; lane < 32; ++lane) {
      for (int e = 0; e < fragment.elements(); ++e) {
        const emu::MatrixPlace place = emu::PlaceOf(fragment, lane, e);
        const int index =
            by_rows ? place.row * stride + place.column : place.column * stride + place.row;
        const u64 word =
            recorded.outputs[static_cast<std::size_t>(e / fragment.elements_per_register)]
                            [static_cast<std::size_t>(lane)];
        ASSERT_EQ(word >> (e % fragment.elements_per_register * bits) & mask,
                  static_cast<u64>(index >> shift) & mask)
            << name << " lane " << lane << " element " << e;
      }
    }
    ++probes;
  }
  std::printf("fragment layouts: %d probes\n", probes);
  EXPECT_GT(probes, 80);
}

}  // namespace
}  // namespace assay::conformance
