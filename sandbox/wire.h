// What the frames between pool and worker say, shared by both ends.
//
//   worker -> pool   {"hello": "compile", "protocol": 1}    once, when the worker is sealed and ready
//   pool -> worker   {"id": 7, "body": {...}}               + payload + descriptors
//   worker -> pool   {"id": 7, "body": {...}}               + payload
//                or  {"id": 7, "error": {"kind", "message", "place", "cure"}}
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/json.h"

namespace assay::sandbox {

inline constexpr std::int64_t kWireProtocol = 1;
/// The descriptor under which a worker finds its socket unless told otherwise.
inline constexpr int kWorkerSocket = 3;

Json ErrorToJson(const Error& error);
/// Reads an error that a worker sent; what cannot be read becomes kInternal.
Error ErrorFromJson(const Json& json);

}  // namespace assay::sandbox
