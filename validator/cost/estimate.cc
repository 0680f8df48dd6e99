#include "validator/cost/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace assay::cost {
namespace {

constexpr double kSector = 32;
/// Of L2, what can be counted on to be there still: the rest goes to lines that are used once.
constexpr double kKeptOfL2 = 0.75;

double Real(std::uint64_t count) { return static_cast<double>(count); }

/// Different sectors that `blocks` blocks touch, if a sample of `sampled` blocks, each touching
/// `each`, touched `together` of them: as many as when each block draws its own from a common pool.
double Together(double each, double together, double sampled, double blocks) {
  if (blocks <= sampled) return together * blocks / std::max(sampled, 1.0);
  if (sampled <= 1 || together >= 0.999 * sampled * each) return blocks * each;
  if (together <= 1.001 * each) return each;
  const auto drawn = [each](double pool, double count) {
    return -pool * std::expm1(count * std::log1p(-std::min(each / pool, 1 - 1e-12)));
  };
  double low = together;
  double high = together;
  while (drawn(high, sampled) < together * (1 - 1e-9) && high < 1e18) high *= 2;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (drawn(middle, sampled) < together ? low : high) = middle;
  }
  return drawn(high, blocks);
}

/// One launch: sums over a sample, extended to the grid.
class LaunchModel {
 public:
  LaunchModel(const Chip& chip, const LaunchShape& shape, std::span<const BufferSpec> buffers,
              const std::set<std::uint32_t>& written_before)
      : chip_(chip),
        shape_(shape),
        counts_(shape.counts),
        buffers_(buffers),
        written_before_(written_before),
        sampled_(std::max(1.0, Real(shape.counts.blocks))),
        blocks_(Real(shape.blocks())),
        scale_(blocks_ / sampled_) {}

  LaunchEstimate Run() {
    LaunchEstimate& e = estimate_;
    e.entry = shape_.entry;
    e.blocks = shape_.blocks();
    e.sampled = counts_.blocks;
    e.needs = shape_.needs;
    e.spill_bytes = shape_.spill_bytes;
    e.sites = counts_.sites;
    e.not_counted = counts_.not_counted;
    e.occupancy = OccupancyOf(chip_, shape_.needs);
    resident_ = std::max(1.0, Real(e.occupancy.blocks));
    const double slots = chip_.multiprocessors * resident_;
    e.waves = blocks_ / slots;
    busiest_ = std::ceil(blocks_ / chip_.multiprocessors);
    Units();
    Memory();
    Waits();
    Describe();
    // Nothing of a launch is done while it is being launched.
    e.bound = chip_.launch_seconds + std::ranges::max(e.seconds);
    At(Limiter::kLaunch) = chip_.launch_seconds;
    e.limiter = static_cast<Limiter>(std::ranges::max_element(e.seconds) - e.seconds.begin());
    return std::move(estimate_);
  }

 private:
  double& At(Limiter limiter) { return estimate_.seconds[static_cast<std::size_t>(limiter)]; }
  double Pipes(Pipe pipe) const { return Real(counts_.pipes[static_cast<std::size_t>(pipe)]); }
  /// Seconds that the busiest multiprocessor takes for so much of the sample's work.
  double OnOne(double of_sample, double a_cycle) const {
    return of_sample / sampled_ * busiest_ / a_cycle / chip_.clock_hz;
  }

  void Units() {
    At(Limiter::kIssue) = OnOne(Real(counts_.warp_instructions), chip_.issues);
    constexpr std::pair<Limiter, Pipe> kUnits[] = {
        {Limiter::kFma, Pipe::kFma},         {Limiter::kAlu, Pipe::kAlu},
        {Limiter::kHalf, Pipe::kHalf},       {Limiter::kDouble, Pipe::kDouble},
        {Limiter::kSpecial, Pipe::kSpecial}, {Limiter::kConvert, Pipe::kConvert},
        {Limiter::kShuffle, Pipe::kShuffle}};
    for (const auto& [limiter, pipe] : kUnits)
      At(limiter) = OnOne(Pipes(pipe), chip_.pipes[static_cast<std::size_t>(pipe)]);
    double matrix = 0;
    for (std::size_t type = 0; type < kMatrixTypeCount; ++type) {
      matrix += Real(counts_.group_products[type]) / chip_.products[type] +
                Real(counts_.products[type]) / chip_.products[type] / chip_.single_warp_share;
    }
    At(Limiter::kMatrix) = OnOne(matrix, 1);
  }

  void Memory() {
    const double passes = Real(counts_.shared.wavefronts) + Real(counts_.loads.lines) +
                          Real(counts_.stores.lines) + Real(counts_.atomics.lines) +
                          Real(counts_.local.lines);
    At(Limiter::kL1) = OnOne(std::max(passes, Pipes(Pipe::kMemory)), 1);
    const double moved =
        Real(counts_.missed_sectors) + Real(counts_.stores.sectors) + Real(counts_.atomics.sectors);
    At(Limiter::kL2Port) = OnOne(moved * kSector, chip_.l2_port_bytes);
    // An atomic is a read and a write there.
    estimate_.l2_bytes = (moved + Real(counts_.atomics.sectors)) * scale_ * kSector;
    At(Limiter::kL2) = estimate_.l2_bytes / chip_.l2_bytes_per_second;
    Dram();
    double places = 0;
    for (const BufferTraffic& traffic : counts_.buffers)
      places += std::min(Real(traffic.written) * scale_, Sectors(traffic.buffer));
    if (counts_.atomics.requests > 0) {
      const double in_turn = Real(counts_.atomics.sectors) * scale_ / std::max(places, 1.0);
      At(Limiter::kAtomics) = in_turn / chip_.clock_hz;
    }
  }

  double Sectors(std::uint32_t buffer) const {
    if (buffer >= buffers_.size()) return 0;
    return std::ceil(Real(static_cast<std::uint64_t>(
                         std::max<std::int64_t>(buffers_[buffer].elements, 0))) *
                     Real(SizeOf(buffers_[buffer].dtype)) / kSector) +
           1;
  }

  /// What goes through memory: everything once; more than once what does not stay in L2 until it is
  /// asked for again, by other blocks or by the same one.
  void Dram() {
    const double wave = std::min(blocks_, chip_.multiprocessors * resident_);
    const double kept = kKeptOfL2 * Real(chip_.l2_bytes) / kSector;
    double read = 0, written = 0, read_by_wave = 0, read_by_blocks = 0, footprint = 0;
    for (const BufferTraffic& traffic : counts_.buffers) {
      const double most = Sectors(traffic.buffer);
      const double each = Real(traffic.read_by_block) / sampled_;
      const double in_wave = std::min(most, Together(each, Real(traffic.read), sampled_, wave));
      const double own = Real(traffic.written_by_block) / sampled_;
      footprint += in_wave + std::min(most, own * wave);
      written += std::min(most, Real(traffic.written_by_block) * scale_);
      // What an earlier launch has just written is there still, if it is not too much.
      if (written_before_.contains(traffic.buffer) && most < kept) continue;
      read += std::min(most, each * blocks_);
      read_by_wave += in_wave;
      read_by_blocks += each * blocks_;
    }
    if (footprint > kept) {
      const double waves = std::max(1.0, blocks_ / wave);
      read = std::max(read, std::min(read_by_blocks, waves * read_by_wave));
      double missed = Real(counts_.missed_sectors);
      for (const BufferTraffic& traffic : counts_.buffers) missed -= Real(traffic.read_by_block);
      read += std::max(0.0, missed) * scale_ * (1 - kept / footprint);
    }
    estimate_.dram_bytes = (read + written) * kSector;
    At(Limiter::kDram) = estimate_.dram_bytes / chip_.dram_bytes_per_second;
  }

  /// Blocks that follow each other in one place of a multiprocessor, each taking as long as it waits
  /// for itself.
  void Waits() {
    const double path = Real(counts_.path_cycles) / sampled_;
    const double rounds = std::max(1.0, busiest_ / resident_);
    const double cycles = std::max(rounds * path, Real(counts_.longest_path));
    At(Limiter::kLatency) = cycles / chip_.clock_hz;
    At(Limiter::kHandOut) = blocks_ / chip_.blocks_a_cycle / chip_.clock_hz;
    if (path <= 0) return;
    estimate_.bytes_in_flight = Real(counts_.missed_sectors) * kSector / sampled_ *
                                std::min(resident_, busiest_) * chip_.dram_latency / path;
  }

  void Describe() {
    const GlobalTraffic& loads = counts_.loads;
    LaunchEstimate& e = estimate_;
    if (loads.requests > 0) e.sectors_a_request = Real(loads.sectors) / Real(loads.requests);
    const double sectors =
        Real(loads.sectors) + Real(counts_.stores.sectors) + Real(counts_.atomics.sectors);
    const double bytes =
        Real(loads.bytes) + Real(counts_.stores.bytes) + Real(counts_.atomics.bytes);
    if (sectors > 0) e.useful = bytes / (sectors * kSector);
    if (counts_.shared.least_wavefronts > 0)
      e.conflicts = Real(counts_.shared.wavefronts) / Real(counts_.shared.least_wavefronts);
  }

  const Chip& chip_;
  const LaunchShape& shape_;
  const LaunchCounts& counts_;
  std::span<const BufferSpec> buffers_;
  const std::set<std::uint32_t>& written_before_;
  double sampled_;
  double blocks_;
  double scale_;
  double resident_ = 1;
  double busiest_ = 1;
  LaunchEstimate estimate_;
};

std::string PlaceOf(const CostlySite& site) {
  if (site.site.line > 0) return fmt::format("{}:{}", site.site.file, site.site.line);
  return fmt::format("PTX line {}", site.site.ptx_line);
}

/// The first site of a kind, as half a sentence.
std::string Worst(const LaunchEstimate& launch, bool shared) {
  for (const CostlySite& site : launch.sites) {
    if (site.shared != shared || site.requests == 0) continue;
    const double each = Real(site.units) / Real(site.requests);
    return shared ? fmt::format("; {} takes {:.1f} passes over the banks a request", PlaceOf(site),
                                each)
                  : fmt::format("; {} touches {:.1f} sectors a request", PlaceOf(site), each);
  }
  return {};
}

}  // namespace

std::string_view Name(Limiter limiter) {
  constexpr std::array<std::string_view, kLimiterCount> kNames = {
      "memory bandwidth",
      "L2 bandwidth",
      "the port between L2 and a multiprocessor",
      "L1 requests and passes over banks",
      "instruction issue",
      "f32 and integer products",
      "integer and logic instructions",
      "half-precision arithmetic",
      "f64 arithmetic",
      "special functions",
      "conversions",
      "shuffles",
      "matrix units",
      "atomics to the same places",
      "latency",
      "handing out blocks",
      "launches"};
  return kNames[static_cast<std::size_t>(limiter)];
}

double SpeedEstimate::ShareOfLimit() const { return bound > 0 ? std::min(1.0, least / bound) : 0; }

const LaunchEstimate* SpeedEstimate::Longest() const {
  const auto longest = std::ranges::max_element(launches, {}, &LaunchEstimate::bound);
  return longest == launches.end() ? nullptr : &*longest;
}

double SpeedEstimate::Share(Limiter of) const {
  const LaunchEstimate* const launch = Longest();
  if (launch == nullptr || launch->bound <= 0) return 0;
  return launch->seconds[static_cast<std::size_t>(of)] / launch->bound;
}

std::string SpeedEstimate::Words() const {
  if (!left_out.empty()) return "not estimated: " + left_out;
  const LaunchEstimate* const launch = Longest();
  if (launch == nullptr) return "nothing is launched";
  std::string text = fmt::format("limited by {}", Name(limiter));
  switch (limiter) {
    case Limiter::kDram:
    case Limiter::kL2:
    case Limiter::kL2Port:
      if (launch->useful < 0.8)
        text += fmt::format(": {:.0f} % of the bytes that are moved were asked for",
                            100 * launch->useful);
      text += Worst(*launch, false);
      break;
    case Limiter::kL1:
      if (launch->conflicts > 1.2)
        text += fmt::format(": {:.1f} times the passes that the bytes need", launch->conflicts);
      text += Worst(*launch, true) + Worst(*launch, false);
      break;
    case Limiter::kLatency:
      text += fmt::format(
          ": {} blocks of {} threads, of which a multiprocessor holds {} at once (limit: {}); each "
          "waits for itself most of the time",
          launch->blocks, launch->needs.threads, launch->occupancy.blocks,
          Name(launch->occupancy.limit));
      break;
    default:
      break;
  }
  if (launch->waves < 1 && limiter != Limiter::kLaunch && limiter != Limiter::kDram)
    text += fmt::format("; the grid fills {:.0f} % of the chip", 100 * launch->waves);
  if (launch->spill_bytes > 0)
    text += fmt::format("; {} bytes of registers a thread are spilled, which is not counted",
                        launch->spill_bytes);
  return text;
}

SpeedEstimate EstimateSpeed(const Chip& chip, std::span<const LaunchShape> launches,
                            std::span<const BufferSpec> buffers) {
  SpeedEstimate estimate;
  estimate.chip = chip.name;
  std::set<std::uint32_t> written;
  for (const LaunchShape& shape : launches) {
    LaunchEstimate& launch =
        estimate.launches.emplace_back(LaunchModel(chip, shape, buffers, written).Run());
    estimate.bound += launch.bound;
    for (const BufferTraffic& traffic : shape.counts.buffers) {
      if (traffic.written > 0) written.insert(traffic.buffer);
    }
  }
  if (const LaunchEstimate* const longest = estimate.Longest(); longest != nullptr)
    estimate.limiter = longest->limiter;
  double bytes = 0;
  double moved = 0;
  for (const BufferSpec& buffer : buffers) {
    if (buffer.role == BufferRole::kWorkspace || buffer.elements <= 0) continue;
    bytes += static_cast<double>(buffer.elements) * Real(SizeOf(buffer.dtype));
  }
  for (const LaunchEstimate& launch : estimate.launches) moved += launch.dram_bytes;
  // A table of which only some rows are looked up need not be read.
  estimate.least = std::min(bytes, moved) / chip.dram_bytes_per_second;
  return estimate;
}

Json ToJson(const SpeedEstimate& estimate) {
  Json axes = Json::object();
  for (const auto& [name, extent] : estimate.axes) axes[name] = extent;
  Json json = {{"axes", std::move(axes)}, {"note", estimate.note}};
  if (!estimate.left_out.empty()) {
    json["left_out"] = estimate.left_out;
    return json;
  }
  json["chip"] = estimate.chip;
  json["limiter"] = Name(estimate.limiter);
  json["words"] = estimate.Words();
  json["share_of_limit"] = estimate.ShareOfLimit();
  json["model"] = {{"bound", estimate.bound}, {"least", estimate.least}};
  Json launches = Json::array();
  for (const LaunchEstimate& launch : estimate.launches) {
    Json shares = Json::object();
    for (std::size_t i = 0; i < kLimiterCount; ++i) {
      if (launch.bound > 0 && launch.seconds[i] > 0.005 * launch.bound)
        shares[std::string(Name(static_cast<Limiter>(i)))] = launch.seconds[i] / launch.bound;
    }
    launches.push_back({{"entry", launch.entry},
                        {"blocks", launch.blocks},
                        {"sampled", launch.sampled},
                        {"threads", launch.needs.threads},
                        {"registers", launch.needs.registers},
                        {"shared_bytes", launch.needs.shared_bytes},
                        {"spill_bytes", launch.spill_bytes},
                        {"blocks_a_multiprocessor", launch.occupancy.blocks},
                        {"occupancy", launch.occupancy.share},
                        {"occupancy_limit", Name(launch.occupancy.limit)},
                        {"waves", launch.waves},
                        {"share_of_bound", std::move(shares)},
                        {"dram_bytes", launch.dram_bytes},
                        {"l2_bytes", launch.l2_bytes},
                        {"sectors_a_request", launch.sectors_a_request},
                        {"useful_bytes", launch.useful},
                        {"bank_conflicts", launch.conflicts},
                        {"bytes_in_flight", launch.bytes_in_flight},
                        {"sites", WriteJson(launch.sites)},
                        {"not_counted", launch.not_counted}});
  }
  json["launches"] = std::move(launches);
  return json;
}

}  // namespace assay::cost
