#include "workers/cubin.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"

namespace assay::workers {
namespace {

struct Part {
  std::string name;
  std::uint32_t type = 0;
  std::string bytes;
  std::uint32_t link = 0;
};

template <class T>
std::string Raw(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// One attribute record of .nv.info: {format 4, attribute, size 8, symbol, value}.
std::string Attribute(std::uint8_t attribute, std::uint32_t symbol, std::uint32_t value) {
  return Raw(std::uint8_t{4}) + Raw(attribute) + Raw(std::uint16_t{8}) + Raw(symbol) + Raw(value);
}

/// A device ELF with one kernel `k` of 42 registers, 16 bytes of frame and 64 of stack.
std::string Cubin() {
  Elf64_Sym symbol{};
  symbol.st_name = 1;
  const std::string no_value =
      Raw(std::uint8_t{3}) + Raw(std::uint8_t{0x1b}) + Raw(std::uint16_t{0xff});
  std::vector<Part> parts{{"", SHT_NULL, "", 0},
                          {".shstrtab", SHT_STRTAB, "", 0},
                          {".strtab", SHT_STRTAB, std::string("\0k\0", 3), 0},
                          {".symtab", SHT_SYMTAB, Raw(Elf64_Sym{}) + Raw(symbol), 2},
                          {".nv.info", SHT_LOPROC,
                           no_value + Attribute(0x2f, 1, 42) + Attribute(0x11, 1, 16) +
                               Attribute(0x12, 1, 64) + Attribute(0x2f, 77, 99),
                           3},
                          {".text.k", SHT_PROGBITS, std::string(256, 'c'), 3},
                          {".nv.constant0.k", SHT_PROGBITS, std::string(544, '\0'), 0}};
  std::string names(1, '\0');
  std::vector<std::uint32_t> name_at;
  for (const Part& part : parts) {
    name_at.push_back(static_cast<std::uint32_t>(names.size()));
    names += part.name + '\0';
  }
  parts[1].bytes = names;
  std::string body, headers;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Elf64_Shdr header{};
    header.sh_name = name_at[i];
    header.sh_type = parts[i].type;
    header.sh_offset = sizeof(Elf64_Ehdr) + body.size();
    header.sh_size = parts[i].bytes.size();
    header.sh_link = parts[i].link;
    headers += Raw(header);
    body += parts[i].bytes;
  }
  Elf64_Ehdr file{};
  file.e_ident[0] = 0x7f;
  file.e_ident[1] = 'E';
  file.e_ident[2] = 'L';
  file.e_ident[3] = 'F';
  file.e_ident[EI_CLASS] = ELFCLASS64;
  file.e_shoff = sizeof file + body.size();
  file.e_shnum = static_cast<Elf64_Half>(parts.size());
  file.e_shstrndx = 1;
  return Raw(file) + body + headers;
}

TEST(ReadCubin, GivesTheNumbersOfEachFunction) {
  const auto functions = ReadCubin(Cubin());
  ASSERT_TRUE(functions) << ToString(functions.error());
  ASSERT_EQ(functions->size(), 1u);
  const CubinFunction& k = functions->at("k");
  EXPECT_EQ(k.registers, 42u);
  EXPECT_EQ(k.frame_bytes, 16u);
  EXPECT_EQ(k.stack_bytes, 64u);
  EXPECT_EQ(k.code_bytes, 256u);
  EXPECT_EQ(k.constant_bytes, 544u);
  EXPECT_TRUE(k.entry);
}

TEST(ReadCubin, RefusesWhatIsNoElf) {
  EXPECT_FALSE(ReadCubin(""));
  EXPECT_FALSE(
      ReadCubin("\x7f"
                "ELF"));
  EXPECT_FALSE(ReadCubin(std::string(1000, 'x')));
  std::string narrow = Cubin();
  narrow[EI_CLASS] = ELFCLASS32;
  EXPECT_FALSE(ReadCubin(narrow));
}

TEST(ReadCubin, SurvivesEveryTruncation) {
  const std::string whole = Cubin();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(ReadCubin(std::string_view(whole).substr(0, length))) << length;
  }
}

TEST(ReadCubin, SurvivesDamage) {
  // Under the sanitizer presets, any read outside of the file ends this test.
  const std::string whole = Cubin();
  Rng rng(11);
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = whole;
    for (std::uint64_t i = 0, flips = 1 + rng.Below(6); i < flips; ++i) {
      damaged[rng.Below(damaged.size())] = static_cast<char>(rng.Next());
    }
    const auto functions = ReadCubin(damaged);
    if (functions) {
      EXPECT_LE(functions->size(), 16u);
    }
  }
}

}  // namespace
}  // namespace assay::workers
