#include "tests/conformance/forms.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace assay::conformance {
namespace {

[[noreturn]] void Malformed(std::string_view line, const char* what) {
  std::fprintf(stderr, "forms.txt: %s: %.*s\n", what, static_cast<int>(line.size()), line.data());
  std::abort();
}

std::string_view Trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = text.find_first_not_of(' ', at);
    if (start == std::string_view::npos) break;
    const std::size_t end = std::min(text.find(' ', start), text.size());
    words.emplace_back(text.substr(start, end - start));
    at = end;
  }
  return words;
}

FormOperand ParseOperand(const std::string& word) {
  if (word.size() > 2 && word[0] == 'v' && word[1] >= '1' && word[1] <= '8') {
    return {.kind = word.substr(2), .vector = word[1] - '0'};
  }
  return {.kind = word};
}

Bound ParseBound(std::string_view text) {
  Bound bound;
  const std::vector<std::string> words = Words(text);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "mma") {
      bound.tensor = true;
      continue;
    }
    if (i + 1 == words.size()) Malformed(text, "bound without a number");
    const double value = std::atof(words[i + 1].c_str());
    if (words[i] == "rel")
      bound.relative = std::exp2(-value);
    else if (words[i] == "abs")
      bound.absolute = std::exp2(-value);
    else if (words[i] == "ulp")
      bound.ulps = value;
    else if (words[i] == "within")
      bound.within = value;
    else
      Malformed(text, "unknown bound");
    ++i;
  }
  return bound;
}

/// Operands appended to an instruction that was written without any.
std::string WithOperands(const std::string& mnemonic, const Form& form) {
  std::string text = mnemonic;
  const char* separator = " ";
  const auto append = [&](const std::vector<FormOperand>& operands, char letter) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      text += separator;
      text += operands[i].vector != 0 ? "$v" : "$";
      text += letter;
      text += std::to_string(i);
      separator = ", ";
    }
  };
  append(form.destinations, 'd');
  append(form.sources, 's');
  return text + ";";
}

/// The accumulators are moved into the destinations first. B lies in shared memory as two core
/// matrices of 8 rows by 16 bytes, 128 bytes apart, without swizzling.
std::string WgmmaStatements(const Form& form) {
  const std::string name = form.instruction.substr(std::string_view("$wgmma").size());
  const bool integer = name.find(".s32.") != std::string::npos;
  const bool transposable =
      name.find("n8k16.") != std::string::npos;  // f16 and bf16 say how A and B are laid out.
  std::string text;
  for (int i = 0; i < form.destinations[0].vector; ++i) {
    text += "mov.b32 $e0." + std::to_string(i) + ", $f1." + std::to_string(i) + "; ";
  }
  text +=
      "st.shared.b32 [%word], $s2; fence.proxy.async.shared::cta; bar.sync 0; "
      "wgmma.fence.sync.aligned; ";
  text += "wgmma.mma_async.sync.aligned" + name + " $vd0, $vs0, %desc, 1" +
          (integer ? "" : ", 1, 1") + (transposable ? ", 0" : "") +
          "; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;";
  return text;
}

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

const char* RegisterPrefix(int bits) {
  return bits == 1 ? "%p" : bits == 16 ? "%h" : bits == 32 ? "%r" : "%q";
}

}  // namespace

std::vector<std::string> ExpandBraces(std::string_view text) {
  std::vector<std::string> results = {""};
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c == '{' || c == '}') && i + 1 < text.size() && text[i + 1] == c) {
      for (std::string& result : results) result += c;
      ++i;
    } else if (c == '{') {
      const std::size_t end = text.find('}', i);
      if (end == std::string_view::npos) Malformed(text, "unbalanced brace");
      std::vector<std::string> expanded;
      std::string_view rest = text.substr(i + 1, end - i - 1);
      std::vector<std::string_view> choices;
      while (true) {
        const std::size_t comma = rest.find(',');
        choices.push_back(rest.substr(0, comma));
        if (comma == std::string_view::npos) break;
        rest.remove_prefix(comma + 1);
      }
      for (const std::string& result : results) {
        for (const std::string_view choice : choices)
          expanded.push_back(result + std::string(choice));
      }
      results = std::move(expanded);
      i = end;
    } else {
      for (std::string& result : results) result += c;
    }
  }
  return results;
}

std::vector<Form> ParseForms(std::string_view text) {
  std::vector<Form> forms;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line[0] == '#') continue;
    const std::size_t tilde = line.find('~');
    const Bound bound =
        tilde == std::string_view::npos ? Bound{} : ParseBound(line.substr(tilde + 1));
    for (const std::string& expanded : ExpandBraces(Trim(line.substr(0, tilde)))) {
      Form form;
      form.name = expanded;
      form.bound = bound;
      // " : " separates; "::" occurs in modifiers.
      const std::size_t colon = expanded.find(" : ");
      const std::size_t equals = expanded.find('=', colon == std::string::npos ? 0 : colon);
      if (colon == std::string::npos || equals == std::string::npos)
        Malformed(expanded, "no ':' or '='");
      for (const std::string& word : Words(expanded.substr(colon + 3, equals - colon - 3))) {
        form.destinations.push_back(ParseOperand(word));
      }
      for (const std::string& word : Words(std::string_view(expanded).substr(equals + 1))) {
        form.sources.push_back(ParseOperand(word));
      }
      form.instruction = expanded.substr(0, colon);
      form.wgmma = form.instruction.starts_with("$wgmma");
      if (form.wgmma) form.instruction = WgmmaStatements(form);
      if (form.instruction.find('$') == std::string::npos)
        form.instruction = WithOperands(form.instruction, form);
      form.layout_probe = form.instruction.find("$mem") != std::string::npos ||
                          form.instruction.find("$shared") != std::string::npos;
      const bool matrix = form.instruction.find("mma") != std::string::npos;
      form.threads = form.layout_probe ? 32 : matrix ? 128 : 256;
      forms.push_back(std::move(form));
    }
  }
  return forms;
}

int RegisterBits(std::string_view kind) {
  if (kind == "pred") return 1;
  for (const std::string_view wide : {"u64", "s64", "f64", "f64nan", "m.f64", "mz.f64", "few64"}) {
    if (kind == wide) return 64;
  }
  for (const std::string_view narrow :
       {"u16", "s16", "f16", "bf16", "f16tiny", "f16one", "bf16tiny", "bf16one"}) {
    if (kind == narrow) return 16;
  }
  return 32;
}

int StoredBytes(std::string_view kind) {
  const int bits = RegisterBits(kind);
  return bits == 1 ? 1 : bits / 8;
}

std::string ModuleHeader() { return ".version 8.7\n.target sm_90a\n.address_size 64\n"; }

FormKernel WriteKernel(const Form& form, std::string_view name) {
  FormKernel kernel;
  std::string& text = kernel.text;
  std::vector<std::string> destination_names;  // As operands: a register, or a vector of them.
  std::vector<std::string> source_names;
  int counter = 0;
  const auto name_all = [&counter](const std::vector<FormOperand>& operands,
                                   std::vector<std::string>& flat,
                                   std::vector<std::string>& names) {
    for (const FormOperand& operand : operands) {
      std::string vector = "{";
      for (int i = 0; i < operand.registers(); ++i) {
        flat.push_back(RegisterPrefix(RegisterBits(operand.kind)) + std::to_string(counter++));
        vector += (i == 0 ? "" : ", ") + flat.back();
      }
      names.push_back(operand.vector == 0 ? flat.back() : vector + "}");
    }
  };
  name_all(form.destinations, kernel.destination_registers, destination_names);
  name_all(form.sources, kernel.source_registers, source_names);

  std::string body = form.instruction;
  for (std::size_t i = 0; i < kernel.destination_registers.size() && form.wgmma; ++i) {
    ReplaceAll(body, "$e0." + std::to_string(i), kernel.destination_registers[i]);
    ReplaceAll(body, "$f1." + std::to_string(i),
               kernel.source_registers[static_cast<std::size_t>(form.sources[0].vector) + i]);
  }
  for (std::size_t i = destination_names.size(); i-- > 0;) {
    ReplaceAll(body, "$vd" + std::to_string(i), destination_names[i]);
    ReplaceAll(body, "$d" + std::to_string(i), destination_names[i]);
  }
  for (std::size_t i = source_names.size(); i-- > 0;) {
    ReplaceAll(body, "$vs" + std::to_string(i), source_names[i]);
    ReplaceAll(body, "$s" + std::to_string(i), source_names[i]);
  }
  const auto address = [&body](std::string_view placeholder, std::string_view to) {
    ReplaceAll(body, placeholder, to);
  };
  address("$mem16", "%m16");
  address("$mem32", "%m32");
  address("$mem64", "%m64");
  address("$mem8l", "%m8l");
  address("$mem8h", "%m8h");
  address("$shared16", "%sh");
  for (const char c : body) kernel.statements += c == ';' ? 1 : 0;

  const auto line = [&text](const std::string& statement) { text += "  " + statement + "\n"; };
  text += ".visible .entry " + std::string(name) +
          "(.param .u64 in, .param .u64 out, .param .u64 mem)\n{\n";
  const std::string count = std::to_string(counter + 1);
  line(".reg .pred %p<" + count + ">; .reg .b16 %h<" + count + ">; .reg .b32 %r<" + count +
       ">; .reg .b64 %q<" + count + ">;");
  if (body.find("%x") != std::string::npos) line(".reg .b128 %x;");
  line(".reg .b64 %in, %out, %mem, %m16, %m32, %m64, %m8l, %m8h; .reg .b32 %t, %u, %sh;");
  int statements = 0;
  const auto code = [&](const std::string& statement) {
    line(statement);
    ++statements;
  };
  code("ld.param.u64 %in, [in];");
  code("ld.param.u64 %out, [out];");
  code("mov.u32 %t, %tid.x;");
  code("mad.wide.u32 %in, %t, 8, %in;");
  code("mad.wide.u32 %out, %t, 8, %out;");
  if (form.layout_probe) {
    line(".shared .align 16 .b8 rows[512];");
    code("ld.param.u64 %mem, [mem];");
    code("add.u64 %m16, %mem, 0;");
    code("add.u64 %m32, %mem, " + std::to_string(2 * kProbeElements) + ";");
    code("add.u64 %m64, %mem, " + std::to_string(6 * kProbeElements) + ";");
    code("add.u64 %m8l, %mem, " + std::to_string(14 * kProbeElements) + ";");
    code("add.u64 %m8h, %mem, " + std::to_string(15 * kProbeElements) + ";");
    code("mov.u32 %sh, rows;");
    code("mad.lo.u32 %sh, %t, 16, %sh;");
    code("mad.wide.u32 %mem, %t, 16, %mem;");
    // Four words a thread: row t of eight 16-bit indices.
    for (int i = 0; i < 4; ++i) {
      code("ld.global.u32 %u, [%mem+" + std::to_string(4 * i) + "];");
      code("st.shared.u32 [%sh+" + std::to_string(4 * i) + "], %u;");
    }
    code("bar.warp.sync 0xffffffff;");
  }
  if (form.wgmma) {
    line(".shared .align 128 .b8 tile[512]; .reg .b32 %word; .reg .b64 %desc;");
    code("mov.u32 %word, tile;");
    code("cvt.u64.u32 %desc, %word;");
    code("shr.u64 %desc, %desc, 4;");
    code("or.b64 %desc, %desc, 0x0000001000080000;");  // Core matrices along k 128 bytes apart,
                                                       // along n 256.
    code("mad.lo.u32 %word, %t, 4, %word;");
  }
  int flat = 0;
  const auto place = [&flat] { return std::to_string(8 * kMaxThreads * flat++) + "]"; };
  for (const std::string& source : kernel.source_registers) {
    const std::string at = "[%in+" + place();
    if (source[1] == 'p') {
      code("ld.global.b32 %u, " + at + ";");
      code("setp.ne.b32 " + source + ", %u, 0;");
    } else {
      code(std::string("ld.global.") +
           (source[1] == 'h'   ? "b16 "
            : source[1] == 'r' ? "b32 "
                               : "b64 ") +
           source + ", " + at + ";");
    }
  }
  kernel.first_statement = statements;
  line(body);
  flat = 0;
  for (const std::string& destination : kernel.destination_registers) {
    const std::string at = "[%out+" + place();
    if (destination[1] == 'p') {
      line("selp.b32 %u, 1, 0, " + destination + ";");
      line("st.global.b32 " + at + ", %u;");
    } else {
      line(std::string("st.global.") +
           (destination[1] == 'h'   ? "b16 "
            : destination[1] == 'r' ? "b32 "
                                    : "b64 ") +
           at + ", " + destination + ";");
    }
  }
  line("ret;");
  text += "}\n";
  return kernel;
}

std::vector<std::uint8_t> ProbeMemory() {
  std::vector<std::uint8_t> memory(16 * static_cast<std::size_t>(kProbeElements));
  for (int i = 0; i < kProbeElements; ++i) {
    const auto index = static_cast<std::uint64_t>(i);
    const auto element = static_cast<std::size_t>(i);
    std::memcpy(&memory[2 * element], &index, 2);
    std::memcpy(&memory[2 * kProbeElements + 4 * element], &index, 4);
    std::memcpy(&memory[6 * kProbeElements + 8 * element], &index, 8);
    memory[14 * kProbeElements + element] = static_cast<std::uint8_t>(i);
    memory[15 * kProbeElements + element] = static_cast<std::uint8_t>(i >> 8);
  }
  return memory;
}

}  // namespace assay::conformance
