#include "workers/cubin.h"

#include <elf.h>

#include <cstring>
#include <optional>
#include <type_traits>
#include <vector>

namespace assay::workers {
namespace {

constexpr std::uint8_t kFormatSized = 4;
constexpr std::uint8_t kFrameSize = 0x11;
constexpr std::uint8_t kMinStackSize = 0x12;
constexpr std::uint8_t kRegisterCount = 0x2f;

std::unexpected<Error> Malformed(const char* what) {
  return Fail(ErrorKind::kMalformedInput, what, "cubin");
}

/// A T at `offset`, or nothing if that is not wholly inside.
template <class T>
std::optional<T> At(std::string_view bytes, std::uint64_t offset) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string_view Slice(std::string_view bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || bytes.size() - offset < size) return {};
  return bytes.substr(offset, size);
}

std::string_view NameAt(std::string_view strings, std::uint64_t offset) {
  if (offset >= strings.size()) return {};
  strings.remove_prefix(offset);
  return strings.substr(0, strings.find('\0'));
}

struct Section {
  std::string_view name;
  std::string_view bytes;  ///< Empty for sections without bytes in the file.
  Elf64_Shdr header;
};

Result<std::vector<Section>> ReadSections(std::string_view bytes) {
  const auto header = At<Elf64_Ehdr>(bytes, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64) {
    return Malformed("not a 64-bit ELF file");
  }
  std::vector<Section> sections;
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    const auto section =
        At<Elf64_Shdr>(bytes, header->e_shoff + std::uint64_t{i} * sizeof(Elf64_Shdr));
    if (!section) return Malformed("a section header lies outside of the file");
    std::string_view content;
    if (section->sh_type != SHT_NOBITS) {
      content = Slice(bytes, section->sh_offset, section->sh_size);
      if (content.size() != section->sh_size)
        return Malformed("a section lies outside of the file");
    }
    sections.push_back({{}, content, *section});
  }
  if (header->e_shstrndx >= sections.size()) return Malformed("no section names");
  const std::string_view names = sections[header->e_shstrndx].bytes;
  for (Section& section : sections) section.name = NameAt(names, section.header.sh_name);
  return sections;
}

std::vector<std::string> ReadSymbols(const std::vector<Section>& sections) {
  std::vector<std::string> symbols;
  for (const Section& section : sections) {
    if (section.header.sh_type != SHT_SYMTAB || section.header.sh_link >= sections.size()) continue;
    const std::string_view strings = sections[section.header.sh_link].bytes;
    for (std::uint64_t at = 0; auto symbol = At<Elf64_Sym>(section.bytes, at);
         at += sizeof(Elf64_Sym)) {
      symbols.emplace_back(NameAt(strings, symbol->st_name));
    }
    break;
  }
  return symbols;
}

using Functions = std::map<std::string, CubinFunction>;

Status ReadInfo(std::string_view info, const std::vector<std::string>& symbols,
                Functions& functions) {
  for (std::uint64_t at = 0; at < info.size();) {
    const auto format = At<std::uint8_t>(info, at);
    const auto attribute = At<std::uint8_t>(info, at + 1);
    const auto size = At<std::uint16_t>(info, at + 2);
    if (!format || !attribute || !size) return Malformed(".nv.info ends in the middle of a record");
    at += 4;
    if (*format != kFormatSized) continue;
    const auto symbol = At<std::uint32_t>(info, at);
    const auto value = At<std::uint32_t>(info, at + 4);
    at += *size;
    if (at > info.size()) return Malformed(".nv.info ends in the middle of a record");
    if (*size < 8 || !symbol || !value || *symbol >= symbols.size()) continue;
    const auto function = functions.find(symbols[*symbol]);
    if (function == functions.end()) continue;
    if (*attribute == kRegisterCount) function->second.registers = *value;
    if (*attribute == kFrameSize) function->second.frame_bytes = *value;
    if (*attribute == kMinStackSize) function->second.stack_bytes = *value;
  }
  return {};
}

/// The function that a per-function section is about: ".text.NAME" for prefix ".text.".
std::optional<std::string> After(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix) || name.size() == prefix.size()) return std::nullopt;
  return std::string(name.substr(prefix.size()));
}

}  // namespace

Result<std::map<std::string, CubinFunction>> ReadCubin(std::string_view bytes) {
  ASSAY_TRY(const std::vector<Section> sections, ReadSections(bytes));
  Functions functions;
  for (const Section& section : sections) {
    if (const auto name = After(section.name, ".text.")) {
      functions[*name].code_bytes = section.header.sh_size;
    } else if (const auto kernel = After(section.name, ".nv.constant0.")) {
      functions[*kernel].constant_bytes = section.header.sh_size;
      functions[*kernel].entry = true;
    }
  }
  const std::vector<std::string> symbols = ReadSymbols(sections);
  for (const Section& section : sections) {
    if (section.name != ".nv.info") continue;
    ASSAY_TRY_VOID(ReadInfo(section.bytes, symbols, functions));
  }
  return functions;
}

}  // namespace assay::workers
