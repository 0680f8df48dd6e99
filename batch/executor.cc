#include "batch/executor.h"

#include <algorithm>

#include "runs/folder.h"

namespace assay::batch {

Work::Work(const Plan& plan, const std::vector<runs::InstanceKey>& keys, BatchFolder& folder,
           const runs::Store& store, Purse& purse, Observer& observer)
    : plan_(plan),
      keys_(keys),
      folder_(folder),
      store_(store),
      purse_(purse),
      observer_(observer),
      leaders_(Leaders(plan)) {
  const BatchState state = folder.state();
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    const auto found = state.instances.find(plan.tasks[i].id());
    if (found == state.instances.end()) continue;
    known_[i] = found->second;
    if (!found->second.ended) continue;
    runs::Usage spent = found->second.ended->tokens;
    spent += found->second.ended->lost;
    purse.Spent(plan.tasks[i].id(), plan.tasks[i].request.model.spec, spent);
  }
}

std::optional<prompts::Sister> Work::SisterOf(std::size_t index) const {
  const std::optional<std::size_t> leader = leaders_[index];
  if (!leader || !TakesSister(plan_.tasks[index].request)) return std::nullopt;
  InstanceState state;
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(*leader);
    if (found == known_.end()) return std::nullopt;
    state = found->second;
  }
  const std::string id = plan_.tasks[*leader].id();
  if (state.up_to_date) {
    const auto record = runs::FindRecord(store_, keys_[*leader]);
    if (!record || !record->files.contains("kernel.cu") || !record->files.contains("launch.json"))
      return std::nullopt;
    auto kernel = store_.Get(record->files.at("kernel.cu"));
    auto launch = store_.Get(record->files.at("launch.json"));
    if (!kernel || !launch) return std::nullopt;
    return prompts::Sister{id, {*std::move(kernel), *std::move(launch)}};
  }
  if (!state.ended || state.ended->vetted.empty()) return std::nullopt;
  auto sister = SisterFrom(id, folder_.path() / state.ended->vetted);
  return sister ? std::optional(*std::move(sister)) : std::nullopt;
}

std::vector<verdict::Counterexample> Work::RegressionsOf(std::size_t index) const {
  const std::optional<std::size_t> leader = leaders_[index];
  if (!leader) return {};
  return SharedRegressions(regressions(), plan_.tasks[*leader].request.instance);
}

Status Work::Started(std::size_t index, const std::string& where, const std::string& sister) {
  const InstanceStarted event{plan_.tasks[index].id(), where, sister};
  ASSAY_TRY_VOID(folder_.Record(event));
  const std::lock_guard lock(telling_);
  observer_.OnStarted(index, event);
  return {};
}

Status Work::Keep(std::size_t index, const InstanceEnded& ended) const {
  const Task& task = plan_.tasks[index];
  const Path run = folder_.RunOf(task.id());
  // One that failed may have no run; its sisters learn nothing from it then.
  if (!leaders_[index] && plan_.share)
    (void)ShareRegressions(regressions(), task.request.instance, run);
  if (ended.end != End::kAccepted || ended.vetted.empty() || store_.root().empty()) return {};
  const Path vetted = folder_.path() / ended.vetted;
  ASSAY_TRY(const std::vector<runs::StampedEvent> events, runs::RunFolder::ReadEvents(run));
  runs::RunState state;
  for (const runs::StampedEvent& event : events) ASSAY_TRY_VOID(runs::Apply(event, state));
  const runs::Attempt* const accepted = state.Accepted();
  std::error_code error;
  const Path absolute = std::filesystem::absolute(vetted, error);
  return runs::KeepRecord(store_,
                          {.key = keys_[index],
                           .instance = task.id(),
                           .op = task.request.instance.op.name,
                           .binding = runs::BindingWords(task.request.instance),
                           .arch = task.request.instance.arch,
                           .certificate = accepted == nullptr ? "" : accepted->certificate,
                           .files = {},
                           .vetted = (error ? vetted : absolute).lexically_normal().string(),
                           .author = accepted == nullptr ? "" : accepted->JoinedReply().model},
                          vetted, std::filesystem::absolute(run, error).string());
}

Status Work::Ended(std::size_t index, const InstanceEnded& ended) {
  ASSAY_TRY_VOID(Keep(index, ended));
  ASSAY_TRY_VOID(folder_.Record(ended));
  {
    const std::lock_guard lock(mutex_);
    known_[index].ended = ended;
  }
  const std::lock_guard lock(telling_);
  observer_.OnEnded(index, ended);
  return {};
}

void Work::Notice(std::size_t index, const loop::Notice& notice) {
  const std::lock_guard lock(telling_);
  observer_.OnNotice(index, notice);
}

void Work::Word(const std::string& word) {
  const std::lock_guard lock(telling_);
  observer_.OnWord(word);
}

std::vector<std::size_t> InOrder(const Plan& plan, std::vector<std::size_t> todo) {
  const auto leaders = Leaders(plan);
  std::map<std::size_t, int> urgency;
  for (const std::size_t index : todo) {
    const int priority = plan.tasks[index].priority;
    for (const std::size_t each : {index, leaders[index].value_or(index)}) {
      const auto [known, fresh] = urgency.emplace(each, priority);
      if (!fresh) known->second = std::max(known->second, priority);
    }
  }
  std::ranges::stable_sort(todo, [&](std::size_t a, std::size_t b) {
    if (urgency[a] != urgency[b]) return urgency[a] > urgency[b];
    return !leaders[a] && leaders[b];
  });
  return todo;
}

}  // namespace assay::batch
