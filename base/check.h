// What a failed ASSAY_CHECK does. A program ends with a message, and so does a worker. A library may not end the program that it is
// part of: there the check throws, whoever runs a job makes an internal error of it, and so does the border of the library.
#pragma once

#include <stdexcept>

namespace assay {

/// An invariant of ours did not hold: where, which, and what was said about it.
class CheckFailure : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// From now on failed checks throw CheckFailure, in all threads of this program or library.
void ThrowOnFailedChecks();

}  // namespace assay
