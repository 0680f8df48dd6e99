// wgmma: products of a warpgroup, with operands in shared memory (PTX ISA 9.7.15).
//
// A warp's 16 rows of the product depend on no other warp's registers, so each warp computes its
// own when it issues the instruction, which is one of the legal times. What it reads in shared
// memory counts as read until wgmma.wait_group, so that overwriting it earlier is a race.
//
// A sparse A is expanded before the product, by metadata that lie in the lanes of each warp as they
// do for mma.sp of 16 rows (read off an H200).
#include "validator/emu/handlers/wgmma.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "validator/emu/handlers/async_copy.h"
#include "validator/emu/handlers/mma_forms.h"
#include "validator/emu/handlers/partial_rows.h"
#include "validator/emu/semantics/matrix.h"
#include "validator/emu/semantics/matrix_layout.h"
#include "validator/emu/site.h"
#include "validator/emu/watch/copied_bytes.h"
#include "validator/emu/watch/machine.h"
#include "validator/emu/watch/undefined.h"

namespace assay::emu {
namespace {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::Type;
using u32 = std::uint32_t;
using s32 = std::int32_t;

constexpr int kRows = 16;  ///< Of a warp.
constexpr int kMaxN = 256;
constexpr int kMaxK = 64;  ///< Elements, single bits in words of 32.

/// An instruction's shape and types, read off it when it runs: it costs little beside the product.
struct Product {
  int n = 0;
  int k = 0;
  int bits = 16;  ///< Of an element of A and B; single bits travel in words.
  bool a_registers = false;
  bool half = false;  ///< f16 accumulators.
  bool integer = false;
  bool single_bits = false;
  bool sparse = false;  ///< A holds half of its elements; metadata and a selector follow B.
  Type a{};
  Type b{};
  int registers() const { return half ? n / 4 : n / 2; }
  /// Operands, flattened: accumulators, A, B, scale-d.
  std::size_t a_at() const { return static_cast<std::size_t>(registers()); }
  std::size_t b_at() const { return a_at() + (a_registers ? 4u : 1u); }
  std::size_t metadata_at() const { return b_at() + 1; }
  std::size_t scale_at() const { return b_at() + (sparse ? 3u : 1u); }
  /// Elements along k that A holds.
  int stored_k() const { return sparse ? k / 2 : k; }
};

bool ReadProduct(const Instruction& in, Product& product) {
  int m = 0;
  for (const Mod mod : in.mods) {
    int n = 0, k = 0;
    if (std::sscanf(std::string(ptx::Name(mod)).c_str(), "m%dn%dk%d", &m, &n, &k) == 3) {
      product.n = n;
      product.k = k;
    }
  }
  if (m != 64 || in.types.size() != 3 || in.operands.size() < 4) return false;
  product.half = in.type(0) == Type::kF16;
  product.integer = in.type(0) == Type::kS32;
  product.a = in.type(1);
  product.b = in.type(2);
  product.single_bits = product.a == Type::kB1;
  if (product.single_bits) product.k /= 32;
  product.sparse = in.Has(Mod::kSp);
  if (product.sparse && in.operands.size() < 6) return false;
  if (product.stored_k() == 0) return false;
  product.bits = 256 / product.stored_k();
  product.a_registers = in.operands[1].kind == Operand::Kind::kVector;
  return product.n <= kMaxN && product.k <= kMaxK;
}

/// The constant operands behind scale-d: imm-scale-a, imm-scale-b, imm-trans-a, imm-trans-b.
struct Constants {
  bool negate_a = false;
  bool negate_b = false;
  bool transpose_a = false;
  bool transpose_b = false;
};
Constants ConstantsOf(const Instruction& in, const Product& product) {
  Constants constants;
  const auto at = [&](std::size_t i) {
    if (product.sparse) i += 2;
    return i < in.operands.size() ? static_cast<s32>(in.operands[i].bits) : 0;
  };
  if (product.integer) return constants;
  constants.negate_a = at(4) < 0;
  constants.negate_b = at(5) < 0;
  if (product.a_registers) {
    constants.transpose_b = at(6) != 0;
  } else {
    constants.transpose_a = at(6) != 0;
    constants.transpose_b = at(7) != 0;
  }
  return constants;
}

TensorType TensorOf(Type type) {
  switch (type) {
    case Type::kBF16:
      return TensorType::kBF16;
    case Type::kTF32:
      return TensorType::kTF32;
    case Type::kE4M3:
      return TensorType::kE4M3;
    case Type::kE5M2:
      return TensorType::kE5M2;
    default:
      return TensorType::kF16;
  }
}

void Negate(const Product& product, u32* matrix, int size) {
  const u32 sign = u32{1} << (product.bits - 1);
  for (int i = 0; i < size; ++i) matrix[i] ^= sign;
}
void SignExtend(Type type, u32* matrix, int size) {
  if (type != Type::kS8) return;
  for (int i = 0; i < size; ++i) {
    // NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): whoever calls has filled it
    matrix[i] = static_cast<u32>(static_cast<s32>(static_cast<std::int8_t>(matrix[i])));
  }
}

/// Descriptors are read from the first lane: they are the same in all.
std::uint64_t WordOf(CoreWarp& warp, const DecodedOperand& operand) {
  return warp.Lanes<std::uint64_t>(operand.slot)[FirstLane(warp.exec)];
}

/// Register `operand`, some of whose lanes are undefined, takes part.
void AddClass(const CoreWarp& warp, const DecodedOperand& operand, UndefinedClass& classes) {
  const Frame& frame = *warp.frame;
  if (UnsetLanes(frame, operand.shadow) != 0) classes.Add(false, kNoPc);
  if (ChosenLanes(frame, operand.shadow) != 0) classes.Add(true, frame.origin[operand.shadow]);
}

void RegistersToA(CoreWarp& warp, const Decoded& op, const Product& product, u32* a,
                  UndefinedOuter& undefined) {
  const int per_register = 32 / product.bits;
  const u32 mask = product.bits == 32 ? ~u32{0} : (u32{1} << product.bits) - 1;
  undefined.at.assign(kRows, false);
  for (int r = 0; r < 4; ++r) {
    const DecodedOperand& operand = op.operands[product.a_at() + static_cast<std::size_t>(r)];
    const auto* const lanes = warp.Lanes<u32>(operand.slot);
    const LaneMask bad = warp.device->track_defined ? warp.frame->undefined[operand.shadow] : 0;
    if (bad != 0) AddClass(warp, operand, undefined);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      for (int e = 0; e < per_register; ++e) {
        const MatrixPlace at =
            WgmmaOperandPlace(0, lane, r * per_register + e, product.stored_k(), product.bits);
        a[at.column * kRows + at.row] = lanes[lane] >> (e * product.bits) & mask;
        if ((bad >> lane & 1) != 0) undefined.at[static_cast<std::size_t>(at.row)] = true;
      }
    }
  }
}

/// The row of mma.sp's forms that has a warp's part of a sparse A, or -1.
int SparseForm(const Product& product) {
  const MmaElements elements = product.bits == 8
                                   ? product.integer ? MmaElements::kByte : MmaElements::kFp8
                               : product.bits == 32       ? MmaElements::kTF32
                               : product.a == Type::kBF16 ? MmaElements::kBF16
                                                          : MmaElements::kF16;
  return FindMmaForm({MmaFamily::kSparse, elements, kRows, 8, product.k});
}

/// A with what it leaves out, from the half that it holds. Rows whose metadata are undefined are
/// flagged.
void Expand(CoreWarp& warp, const Decoded& op, const Product& product, u32* stored, u32* a,
            UndefinedOuter& undefined) {
  const DecodedOperand& metadata = op.operands[product.metadata_at()];
  const int selector = static_cast<int>(op.source->operands[4].bits);
  // tf32 ignores these bits; no element may look absent by them.
  if (product.bits == 32) {
    for (int i = 0; i < kRows * product.stored_k(); ++i) stored[i] &= 0xffffe000u;
  }
  ExpandSparse(warp.Lanes<u32>(metadata.slot),
               MmaFormAt(static_cast<std::size_t>(SparseForm(product))), selector,
               product.integer ? 0 : TensorAbsent(TensorOf(product.a)), stored, a);
  if (!warp.device->track_defined) return;
  const LaneMask bad = warp.frame->undefined[metadata.shadow];
  if (bad != 0) AddClass(warp, metadata, undefined);
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const bool contributes = product.bits == 8 || lane % 4 / 2 == selector;
    if ((bad >> lane & 1) == 0 || !contributes) continue;
    undefined.at[static_cast<std::size_t>(lane / 4)] = true;
    undefined.at[static_cast<std::size_t>(lane / 4) + 8] = true;
  }
}

void Multiply(const Product& product, const Instruction& in, u32* a, u32* b, const u32* c, u32* d) {
  const auto as_signed = [](auto* words) { return reinterpret_cast<const s32*>(words); };
  auto* const result = reinterpret_cast<s32*>(d);
  if (product.single_bits) {
    TensorMultiplyBits(kRows, product.n, product.k * 32, false, a, b, as_signed(c), result);
  } else if (product.integer) {
    SignExtend(product.a, a, kRows * product.k);
    SignExtend(product.b, b, product.n * product.k);
    TensorMultiplyInteger(kRows, product.n, product.k, in.Has(Mod::kSatfinite), as_signed(a),
                          as_signed(b), as_signed(c), result);
  } else {
    TensorProduct shape{.m = kRows,
                        .n = product.n,
                        .k = product.k,
                        .a = TensorOf(product.a),
                        .b = TensorOf(product.b)};
    shape.warpgroup = true;
    shape.sparse = product.sparse;
    shape.half_accumulator = shape.half_result = product.half;
    TensorMultiply(shape, a, b, c, d);
  }
}

bool ScaleHolds(const CoreWarp& warp, const DecodedOperand& scale) {
  const LaneMask mask = warp.predicates[scale.slot];
  return ((scale.negated ? ~mask : mask) >> FirstLane(warp.exec) & 1) != 0;
}

/// Accumulators to a matrix by columns and back. `visit(register, shift, lane, index)`.
template <class Visit>
void ForAccumulators(const Product& product, Visit visit) {
  const int per_register = product.half ? 2 : 1;
  for (int r = 0; r < product.registers(); ++r) {
    for (int lane = 0; lane < kWarpSize; ++lane) {
      for (int e = 0; e < per_register; ++e) {
        const MatrixPlace at = WgmmaAccumulatorPlace(0, lane, r * per_register + e);
        visit(r, 16 * e, lane, at);
      }
    }
  }
}

/// What of the sums that a product adds to is undefined. Accumulators in flight are what their
/// product will make them; copies of such are taken for defined.
std::vector<LaneBitsets> UndefinedSums(const CoreWarp& warp, const Decoded& op,
                                       const Product& product, bool accumulate,
                                       UndefinedClass& classes) {
  std::vector<LaneBitsets> sums(static_cast<std::size_t>(product.registers()));
  const Frame& frame = *warp.frame;
  for (std::size_t r = 0; accumulate && r < sums.size(); ++r) {
    const DecodedOperand& sum = op.operands[r];
    if (frame.undefined[sum.shadow] == 0) continue;
    if (!IsInFlight(warp, frame.origin[sum.shadow])) {
      for (int lane = 0; lane < kWarpSize; ++lane)
        sums[r][static_cast<std::size_t>(lane)] = UndefinedBits(frame, sum, lane);
      AddClass(warp, sum, classes);
      continue;
    }
    for (const AsyncGroups::Product& before : warp.async->in_flight) {
      for (const auto& [shadow, bits] : before.undefined) {
        if (shadow != sum.shadow) continue;
        sums[r] = bits;
        classes.Add(before.choice != kNoPc, before.choice);
      }
    }
  }
  return sums;
}

/// Until it is waited for, nobody may touch the accumulators.
void PutInFlight(CoreWarp& warp, const Decoded& op, const std::vector<LaneBitsets>& undefined,
                 std::uint32_t choice) {
  AsyncGroups::Product& product = GroupsOf(warp).in_flight.emplace_back();
  product.pc = warp.PcOf(op);
  product.choice = choice;
  product.frame = warp.frame;
  for (std::size_t r = 0; r < undefined.size(); ++r) {
    const DecodedOperand& sum = op.operands[r];
    if (std::ranges::any_of(undefined[r], [](std::uint64_t bits) { return bits != 0; }))
      product.undefined.emplace_back(sum.shadow, undefined[r]);
    SetUndefined(*warp.frame, sum.shadow, warp.exec, kAllLanes, product.pc);
  }
}

/// The products of groups before `first` are done: their accumulators, and copies of them, are
/// what they were computed to be, unless a later product works on them.
void Land(CoreWarp& warp, std::uint64_t first) {
  AsyncGroups& groups = GroupsOf(warp);
  std::vector<AsyncGroups::Product> landed;
  std::erase_if(groups.in_flight, [&](AsyncGroups::Product& product) {
    const bool done = product.committed && product.group < first;
    if (done) landed.push_back(std::move(product));
    return done;
  });
  for (const AsyncGroups::Product& product : landed) {
    if (IsInFlight(warp, product.pc)) continue;
    Frame& frame = *product.frame;
    const FunctionCode& code = warp.device->program.functions[frame.function];
    for (std::uint32_t shadow = code.constant_slots; shadow < code.slot_count; ++shadow) {
      if (frame.undefined[shadow] == 0 || frame.origin[shadow] != product.pc) continue;
      LaneBitsets bits{};
      for (const auto& [of, undefined] : product.undefined) {
        if (of == shadow) bits = undefined;
      }
      DecodedOperand sum;
      sum.bits = 32;
      sum.shadow = shadow;
      const bool chosen = product.choice != kNoPc;
      SetUndefinedBits(frame, sum, warp.exec, bits, chosen ? product.choice : product.pc);
      if (chosen) frame.machine[shadow] |= frame.undefined[shadow] & warp.exec;
    }
  }
}

void RunProduct(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  if (!GroupsOf(warp).products_fenced && warp.device->monitored &&
      warp.device->execution.checks.barrier) {
    Report1(warp, FindingKind::kBarrierMisuse, warp.PcOf(op), warp.exec,
            "wgmma.mma_async without a wgmma.fence before it: nothing orders the registers and "
            "shared memory that it uses before it",
            "starts a product");
    GroupsOf(warp).products_fenced = true;
  }
  const Instruction& in = *op.source;
  Product product;
  ReadProduct(in, product);
  const Constants constants = ConstantsOf(in, product);
  const bool track = warp.device->monitored && warp.device->track_defined;
  alignas(64) u32 a[kRows * kMaxK];
  alignas(64) u32 stored[kRows * kMaxK];
  alignas(64) u32 b[kMaxN * kMaxK];
  alignas(64) u32 c[kRows * kMaxN] = {};
  alignas(64) u32 d[kRows * kMaxN];
  UndefinedOuter rows;
  UndefinedOuter columns;
  std::vector<std::uint64_t>& tokens = GroupsOf(warp).products_open;
  const auto read = [&](std::size_t operand, SharedMatrix matrix, bool by_columns, u32* out,
                        UndefinedOuter& undefined) {
    const ChosenPlaces places = CheckCopyNumber(warp, op, op.operands[operand], warp.exec);
    const MatrixDescriptor descriptor = UnpackDescriptor(WordOf(warp, op.operands[operand]));
    if (!ReadShared(warp, op, descriptor, matrix, by_columns, out, undefined, tokens)) return false;
    // A descriptor holds the address of what it describes.
    if (places.lanes != 0 && !MayBeOfSharedAddress(*warp.device, places.origin)) {
      undefined.at.assign(undefined.at.size(), true);
      undefined.Add(true, places.origin);
    }
    return true;
  };
  u32* const held = product.sparse ? stored : a;
  if (product.a_registers) {
    RegistersToA(warp, op, product, held, rows);
  } else if (!read(product.a_at(),
                   {.outer = kRows,
                    .k = product.stored_k(),
                    .element_bits = product.bits,
                    .k_major = !constants.transpose_a,
                    .first = static_cast<int>(warp.index % 4) * kRows},
                   true, held, rows)) {
    return;
  }
  if (!read(product.b_at(),
            {.outer = product.n,
             .k = product.k,
             .element_bits = product.bits,
             .k_major = !constants.transpose_b},
            false, b, columns))
    return;
  if (constants.negate_a) Negate(product, held, kRows * product.stored_k());
  if (product.sparse) Expand(warp, op, product, stored, a, rows);
  if (constants.negate_b) Negate(product, b, product.n * product.k);
  const bool accumulate = ScaleHolds(warp, op.operands[product.scale_at()]);
  const u32 mask = product.half ? 0xffffu : ~0u;
  if (accumulate) {
    ForAccumulators(product, [&](int r, int shift, int lane, MatrixPlace at) {
      c[at.column * kRows + at.row] = warp.Lanes<u32>(op.operands[r].slot)[lane] >> shift & mask;
    });
  }
  Multiply(product, in, a, b, c, d);
  // By register: the bits that come out undefined.
  std::vector<LaneBitsets> undefined;
  UndefinedClass classes;
  if (track) undefined = UndefinedSums(warp, op, product, accumulate, classes);
  ForAccumulators(product, [&](int r, int shift, int lane, MatrixPlace at) {
    if ((warp.exec >> lane & 1) == 0) return;
    u32& word = warp.Lanes<u32>(op.operands[r].slot)[lane];
    word = (word & ~(mask << shift)) | (d[at.column * kRows + at.row] & mask) << shift;
    if (!track) return;
    if (rows.at[static_cast<std::size_t>(at.row)] ||
        columns.at[static_cast<std::size_t>(at.column)]) {
      undefined[static_cast<std::size_t>(r)][static_cast<std::size_t>(lane)] |= std::uint64_t{mask}
                                                                                << shift;
    }
  });
  const bool unset = rows.unset || columns.unset || classes.unset;
  for (const std::uint32_t choice : {rows.choice, columns.choice}) {
    if (choice != kNoPc) classes.choice = choice;
  }
  if (track) PutInFlight(warp, op, undefined, unset ? kNoPc : classes.choice);
}

void FenceProducts(Warp& base, const Decoded&) { GroupsOf(Core(base)).products_fenced = true; }

void CommitProducts(Warp& base, const Decoded&) {
  AsyncGroups& groups = GroupsOf(Core(base));
  for (AsyncGroups::Product& product : groups.in_flight) {
    if (product.committed) continue;
    product.committed = true;
    product.group = groups.product_groups;
  }
  ++groups.product_groups;
  groups.products_committed.push_back(std::move(groups.products_open));
  groups.products_open.clear();
}

void WaitProducts(Warp& base, const Decoded& op) {
  CoreWarp& warp = Core(base);
  AsyncGroups& groups = GroupsOf(warp);
  const std::uint64_t keep = op.source->operands[0].bits;
  const std::size_t committed = groups.products_committed.size();
  const auto done = static_cast<std::ptrdiff_t>(committed > keep ? committed - keep : 0);
  for (std::ptrdiff_t g = 0; g < done; ++g) {
    for (const std::uint64_t token : groups.products_committed[static_cast<std::size_t>(g)]) {
      if (warp.device->race) warp.device->race->OnWarpgroupWait(warp.number, warp.exec, token);
    }
  }
  groups.products_committed.erase(groups.products_committed.begin(),
                                  groups.products_committed.begin() + done);
  if (groups.product_groups > keep) Land(warp, groups.product_groups - keep);
}

// --- resolution
template <Handler kHandler>
Handler WarpWide(const Instruction&, Decoded& decoded) {
  decoded.flags |= kFlagControl | kFlagWarpWide | kFlagMemory;
  decoded.propagate = kPropagateSelf;
  return kHandler;
}

Handler ResolveWait(const Instruction& in, Decoded& decoded) {
  const bool fits = in.operands.size() == 1 && in.operands[0].kind == Operand::Kind::kImmediate;
  return fits ? WarpWide<&WaitProducts>(in, decoded) : nullptr;
}

Handler ResolveProduct(const Instruction& in, Decoded& decoded) {
  Product product;
  if (!ReadProduct(in, product)) return nullptr;
  const auto is_slot = [&](std::size_t i, int bits) {
    return decoded.operands[i].kind == DecodedOperand::Kind::kSlot &&
           decoded.operands[i].bits == bits;
  };
  if (decoded.operand_count <= product.scale_at()) return nullptr;
  for (std::size_t i = 0; i < product.a_at(); ++i) {
    if (!is_slot(i, 32)) return nullptr;
  }
  for (std::size_t i = product.a_at(); i < product.b_at(); ++i) {
    if (!is_slot(i, product.a_registers ? 32 : 64)) return nullptr;
  }
  if (product.sparse) {
    // Metadata of 16- and 32-bit elements lie in one pair of lanes of each four, those of 8-bit
    // elements in all.
    const std::uint64_t selectors = product.bits == 8 ? 1 : 2;
    if (SparseForm(product) < 0 || !is_slot(product.metadata_at(), 32) ||
        in.operands[4].kind != Operand::Kind::kImmediate || in.operands[4].bits >= selectors) {
      return nullptr;
    }
  }
  const bool fits = is_slot(product.b_at(), 64) &&
                    decoded.operands[product.scale_at()].kind == DecodedOperand::Kind::kPredicate;
  return fits ? WarpWide<&RunProduct>(in, decoded) : nullptr;
}

constexpr ResolverRow kRowsOfTable[] = {
    {Opcode::kWgmmaMmaAsync, &ResolveProduct},
    {Opcode::kWgmmaFence, &WarpWide<&FenceProducts>},
    {Opcode::kWgmmaCommitGroup, &WarpWide<&CommitProducts>},
    {Opcode::kWgmmaWaitGroup, &ResolveWait},
};

}  // namespace

std::span<const ResolverRow> WarpgroupRows() { return kRowsOfTable; }

}  // namespace assay::emu
