// What the frames between pool and worker say, shared by both ends.
//
//   worker -> pool   {"hello": "compile", "protocol": 1}    once, when the worker is sealed and ready
//   pool -> worker   {"id": 7, "body": {...}}               + payload + descriptors
//   worker -> pool   {"id": 7, "body": {...}}               + payload
//                or  {"id": 7, "error": {"kind", "message", "place", "cure"}}
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace assay::sandbox {

inline constexpr std::int64_t kWireProtocol = 1;
/// The descriptor under which a worker finds its socket unless told otherwise.
inline constexpr int kWorkerSocket = 3;

Json ErrorToJson(const Error& error);
/// Reads an error that a worker sent; what cannot be read becomes kInternal.
Error ErrorFromJson(const Json& json);

/// A worker's words inside of a sentence of ours: one line in quotation marks, bounded. The worker runs
/// hostile code; what it says must be seen to be its words, and never look like our advice.
std::string Quoted(std::string_view words);

/// What the worker of that name said in declining a request, as an error of ours. Whatever kind it
/// claims, the exit code is that of the environment; its advice is left out, and ours is in its place.
Error OfWorker(const Error& said, std::string_view worker);

}  // namespace assay::sandbox
