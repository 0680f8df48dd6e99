// A second look at an execution on a GPU: the vendor's own tools (compute-sanitizer), each of which
// watches the process that runs it for one kind of fault.
//
// What a tool says is text for people, read by whoever asked (validator/gates/tool_words.h).
//
// Thread-safe; each tool looks at one execution at a time.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/shared_memory.h"
#include "validator/execution/execution.h"

namespace assay::engine {

class Inspector {
 public:
  struct Inspected {
    Report report;
    std::string words;  ///< The end of what the tool said.
  };

  virtual ~Inspector() = default;
  /// Their names: "memcheck", ...
  virtual std::span<const std::string_view> Tools() const = 0;
  /// Runs an execution in a process of its own under tool `tool`. kEnvironment where there is none.
  virtual Result<Inspected> Inspect(std::size_t tool, const Execution& execution,
                                    std::span<SharedMemory* const> buffers) = 0;
};

}  // namespace assay::engine
