#include "validator/engine/abandoned.h"

#include <utility>

namespace assay::engine {
namespace {

thread_local std::stop_token stop_of_this_thread;

}  // namespace

Abandoning::Abandoning(std::stop_token stop)
    : before_(std::exchange(stop_of_this_thread, std::move(stop))) {}
Abandoning::~Abandoning() { stop_of_this_thread = std::move(before_); }

bool IsAbandoned() { return stop_of_this_thread.stop_requested(); }

}  // namespace assay::engine
