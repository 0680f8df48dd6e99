#include "dataset/families.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace assay::dataset {
namespace {

struct Rule {
  std::string_view part;  // what a word of the name holds
  std::string_view tag;
};

// Parts of three letters and fewer are compared with whole words, because they stand in too many.
constexpr auto kRules = std::to_array<Rule>({{"norm", "norm"},           {"attention", "attention"},
                                             {"attn", "attention"},      {"sdpa", "attention"},
                                             {"mha", "attention"},       {"gqa", "attention"},
                                             {"mla", "attention"},       {"gemm", "matmul"},
                                             {"gemv", "matmul"},         {"matmul", "matmul"},
                                             {"linear", "matmul"},       {"mm", "matmul"},
                                             {"bmm", "matmul"},          {"addmm", "matmul"},
                                             {"matvec", "matmul"},       {"mlp", "matmul"},
                                             {"moe", "matmul"},          {"conv", "convolution"},
                                             {"softmax", "softmax"},     {"entropy", "softmax"},
                                             {"logsumexp", "softmax"},   {"nll", "softmax"},
                                             {"cumsum", "scan"},         {"cumprod", "scan"},
                                             {"scan", "scan"},           {"ssm", "scan"},
                                             {"mamba", "scan"},          {"scatter", "indexing"},
                                             {"gather", "indexing"},     {"embedding", "indexing"},
                                             {"index", "indexing"},      {"histogram", "indexing"},
                                             {"sum", "reduction"},       {"mean", "reduction"},
                                             {"max", "reduction"},       {"min", "reduction"},
                                             {"prod", "reduction"},      {"reduce", "reduction"},
                                             {"reduction", "reduction"}, {"argmax", "reduction"},
                                             {"argmin", "reduction"},    {"var", "reduction"},
                                             {"std", "reduction"},       {"pool", "pooling"},
                                             {"sort", "sorting"},        {"topk", "sorting"},
                                             {"rope", "rotary"},         {"rotary", "rotary"},
                                             {"relu", "activation"},     {"gelu", "activation"},
                                             {"silu", "activation"},     {"swiglu", "activation"},
                                             {"geglu", "activation"},    {"glu", "activation"},
                                             {"sigmoid", "activation"},  {"tanh", "activation"},
                                             {"swish", "activation"},    {"elu", "activation"},
                                             {"quant", "quantisation"},  {"transpose", "layout"},
                                             {"permute", "layout"},      {"fft", "transform"},
                                             {"hadamard", "transform"},  {"adam", "optimiser"},
                                             {"adamw", "optimiser"},     {"sgd", "optimiser"}});

constexpr auto kNoise = std::to_array<std::string_view>(
    {"fused", "forward", "backward", "grad", "gradient", "fwd", "bwd", "op", "kernel", "and",
     "with", "of", "the", "v", "naive", "batched", "inplace"});

// Lower-case words of letters: "RMSNorm2d_backward" -> rms, norm, d, backward.
std::vector<std::string> WordsOf(std::string_view name) {
  std::vector<std::string> words;
  bool fresh = true;
  char before = '\0';
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalpha(letter) == 0) {
      fresh = true;
      before = '\0';
      continue;
    }
    const bool upper = std::isupper(letter) != 0;
    const bool next_lower =
        i + 1 < name.size() && std::islower(static_cast<unsigned char>(name[i + 1])) != 0;
    const bool after_lower = std::islower(static_cast<unsigned char>(before)) != 0;
    const bool after_upper = std::isupper(static_cast<unsigned char>(before)) != 0;
    if (upper && (after_lower || (after_upper && next_lower))) fresh = true;
    if (fresh) words.emplace_back();
    fresh = false;
    words.back() += static_cast<char>(std::tolower(letter));
    before = c;
  }
  return words;
}

bool Fits(const Rule& rule, const std::string& word) {
  return rule.part.size() <= 3 ? word == rule.part : word.find(rule.part) != std::string::npos;
}

}  // namespace

std::set<std::string> TagsOf(std::string_view op) {
  std::set<std::string> tags;
  std::string rest;
  for (const std::string& word : WordsOf(op)) {
    for (const Rule& rule : kRules) {
      if (Fits(rule, word)) tags.insert(std::string(rule.tag));
    }
    if (std::ranges::find(kNoise, word) == kNoise.end()) rest += (rest.empty() ? "" : "_") + word;
  }
  if (tags.empty()) tags.insert(rest.empty() ? std::string(op) : rest);
  return tags;
}

std::map<std::string, std::string> FamiliesOf(
    const std::set<std::string>& ops, const std::map<std::string, std::set<std::string>>& extra) {
  // Sets of tags, merged as long as an op joins two.
  std::vector<std::set<std::string>> families;
  std::map<std::string, std::set<std::string>> tags_of;
  for (const std::string& op : ops) {
    std::set<std::string> tags = TagsOf(op);
    if (const auto more = extra.find(op); more != extra.end())
      tags.insert(more->second.begin(), more->second.end());
    tags_of[op] = tags;
    std::vector<std::set<std::string>> apart;
    for (std::set<std::string>& family : families) {
      const bool shared =
          std::ranges::any_of(family, [&](const std::string& tag) { return tags.contains(tag); });
      if (shared) {
        tags.merge(family);
      } else {
        apart.push_back(std::move(family));
      }
    }
    apart.push_back(std::move(tags));
    families = std::move(apart);
  }
  std::map<std::string, std::string> result;
  for (const auto& [op, tags] : tags_of) {
    for (const std::set<std::string>& family : families) {
      if (!family.contains(*tags.begin())) continue;
      std::string name;
      for (const std::string& tag : family) name += (name.empty() ? "" : "+") + tag;
      result[op] = name;
    }
  }
  return result;
}

}  // namespace assay::dataset
