#include "agent/models/model.h"

#include <utility>

namespace assay::models {

Result<ModelReply> Ask(Model& model, ModelRequest request) {
  constexpr Ticket kTicket = 1;
  model.Start(kTicket, std::move(request));
  while (true) {
    for (ModelEvent& event : model.Poll(std::chrono::milliseconds(1000))) {
      if (event.ticket == kTicket && event.kind == ModelEvent::Kind::kDone) {
        return std::move(event.reply);
      }
    }
  }
}

}  // namespace assay::models
