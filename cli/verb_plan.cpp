#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/arguments/checkpoint_argument.hpp"
#include "cli/arguments/layout_argument.hpp"
#include "cli/arguments/size_argument.hpp"
#include "cli/frame/verb.hpp"
#include "cli/output/json_text.hpp"
#include "cli/output/table.hpp"
#include "cli/plan/layout_load.hpp"
#include "cli/plan/plan_outcome.hpp"
#include "cli/plan/plan_subject.hpp"
#include "core/base/print.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "core/ports/no_progress.hpp"
#include "core/verify/verify.hpp"
#include "driver/language/model_file.hpp"

namespace reprise::cli {
namespace {

/// Upper limit on the number of tensor shares, summed over all ranks. Planning 100 million shares
/// needs a few GB of memory and less than a minute.
constexpr std::uint64_t kSharesMax = 100'000'000;
/// Upper limit on the number of tensors times the number of ranks when planning a load from a
/// stored checkpoint. The states of all ranks are held in memory.
constexpr std::uint64_t kWishesMax = 2000000;

nlohmann::json json_of(const PlanOutcome& outcome) {
  return {{"balance", outcome.balance()},
          {"bytes", outcome.bytes},
          {"items", outcome.items},
          {"seconds", outcome.seconds}};
}

class PlanVerb final : public Verb {
 public:
  std::string_view name() const override { return "plan"; }
  std::string_view summary() const override {
    return "Plan a save, or a load under another layout, without reading data";
  }
  std::string_view examples() const override {
    return "  reprise plan --model gpt-tiny --layout 'tp=2,dp=2'             a save\n"
           "  reprise plan --model gpt-tiny --layout 'tp=2,dp=2' --to tp=4   and its load\n"
           "  reprise plan --model llama3-405b --layout tp=8,pp=16,dp=128 --to tp=8,pp=12,dp=128\n"
           "                                              16,384 ranks, and a load by 12,288\n"
           "  reprise plan --model deepseek-v3 --layout pp=16,ep=64,dp=1024,etp=1\n"
           "  reprise plan --model llm.yaml --layout tp=8,dp=64              llm.yaml holds, say:\n"
           "      gpt: {layers: 32, hidden: 4096, ffn: 11008, vocabulary: 128256}\n"
           "  reprise plan --ckpt runs/llm --ranks 64     a load of this checkpoint, with "
           "dimension 0\n"
           "                                              cut over 64 ranks\n"
           "  reprise plan --ckpt runs/llm --layout tp=8,pp=4,dp=8 --memory --host-memory 2TB\n"
           "                                              the memory of each rank, and how many "
           "fit\n"
           "  reprise plan --ckpt runs/llm --layout tp=8,pp=4 --files --rank 5\n"
           "                                              the files that rank 5 reads\n"
           "\n"
           "The bytes of a load are those of the tensors that a rank asks for. With --ckpt and\n"
           "--layout, the names of tensors say what that is, in a job of Megatron-Core or of\n"
           "FSDP2; notes name those of which they don't. torch reads a chunk as a whole and keeps\n"
           "it until it has read the next, so the peak is what a rank holds and its two largest\n"
           "reads. What a framework allocates beside that is not counted, and neither are "
           "objects.\n";
  }
  void declare(Options& options) override {
    options
        .text(model_, "--model", "NAME|FILE.yaml", "a model of the simulated job, or a model file")
        .text(layout_, "--layout", "LAYOUT",
              "the layout that saves, or with --ckpt the one that loads: \"tp=2,dp=2\"")
        .text(to_, "--to", "LAYOUT", "the layout that loads")
        .text(checkpoint_, "--ckpt", "CKPT", "plan a load of this checkpoint")
        .number(ranks_, "--ranks", 1, "number of ranks of that load, without --layout")
        .flag(memory_, "--memory", "print the peak memory of each rank (--ckpt, --layout)")
        .flag(files_, "--files", "print the files that each rank reads (--ckpt, --layout)")
        .number(rank_, "--rank", 0, "only this rank (--memory, --files, --per-rank)")
        .text(host_memory_, "--host-memory", "SIZE",
              "with --memory: say how many ranks fit into so much memory, such as 512GiB "
              "or 1.5TB")
        .flag(per_rank_, "--per-rank", "print the bytes of each rank")
        .flag(json_, "--json", "print one JSON document");
  }

  ExitCode run(const Console& console) override {
    check_options();
    if (!checkpoint_.empty()) {
      plan_checkpoint();
    } else {
      plan_model();
    }
    for (const auto& [what, outcome] : rows_) {
      if (rank_ < std::ssize(outcome.bytes)) continue;
      throw Error(Code::kUsage, "there is no rank " + std::to_string(rank_) + ": the " + what +
                                    " has " + counted(outcome.bytes.size(), "rank"));
    }
    print(console);
    return load_ && load_->left_out() ? ExitCode::kInconclusive : ExitCode::kPass;
  }

 private:
  struct Row {
    std::string what;
    PlanOutcome outcome;
  };

  void check_options() const {
    if (model_.empty() == checkpoint_.empty()) {
      throw Error(Code::kUsage,
                  "give either --model with --layout, or --ckpt with --layout or --ranks");
    }
    if (!checkpoint_.empty() && !to_.empty()) {
      throw Error(Code::kUsage,
                  "--to belongs to --model; with --ckpt, --layout is the one that loads");
    }
    if (!checkpoint_.empty() && layout_.empty() && ranks_ == 0) {
      throw Error(Code::kUsage, "--ckpt needs either --layout, or --ranks, which cuts dimension 0");
    }
    if (!checkpoint_.empty() && !layout_.empty() && ranks_ != 0) {
      throw Error(Code::kUsage, "give --layout or --ranks, not both");
    }
    if (!model_.empty() && ranks_ != 0) {
      throw Error(Code::kUsage,
                  "--ranks belongs to --ckpt; with --model, --layout determines the ranks");
    }
    if ((memory_ || files_) && (checkpoint_.empty() || layout_.empty())) {
      throw Error(Code::kUsage, "--memory and --files need --ckpt and --layout");
    }
    if (rank_ >= 0 && !memory_ && !files_ && !per_rank_) {
      throw Error(Code::kUsage, "--rank belongs to --memory, --files and --per-rank");
    }
    if (!host_memory_.empty() && !memory_) {
      throw Error(Code::kUsage, "--host-memory belongs to --memory");
    }
  }

  void plan_layout() {
    LayoutView view{.memory = memory_, .files = files_};
    if (rank_ >= 0) view.rank = rank_;
    if (!host_memory_.empty()) view.host_memory = size_argument("--host-memory", host_memory_);
    load_.emplace(*stored_checkpoint_, layout_, view);
    rows_.push_back({"load", load_->outcome()});
    for (const std::string& note : load_->notes()) notes_.push_back(note);
  }

  std::vector<LocalPlan> offers_under(const sim::ModelSpec& model, const std::string& text,
                                      const std::string& what) {
    const sim::Layout layout = planned_layout(text);
    const std::uint64_t shares = shares_of(model, layout);
    if (shares > kSharesMax) {
      throw Error(Code::kLimit, what + ": " + with_commas(model.parameters.size()) +
                                    " parameters under " + text + " are " + with_commas(shares) +
                                    " shares of tensors on all ranks, but plans " +
                                    "are made for up to " + with_commas(kSharesMax) +
                                    "; take fewer layers, fewer ranks, or more pipeline stages");
    }
    auto offers = offers_of(model, layout);
    for (const auto& note : idle_notes(model, layout)) notes_.push_back(what + ": " + note);
    return offers;
  }

  void plan_checkpoint() {
    if (ranks_ > kPlannedRanksMax) {
      throw Error(Code::kUsage, "--ckpt needs --ranks of 1 to " + std::to_string(kPlannedRanksMax));
    }
    stored_ = stored_path(checkpoint_);
    stored_checkpoint_.emplace(Checkpoint::open(*stored_.store, stored_.path));
    note_damage();
    if (!layout_.empty()) return plan_layout();
    const Checkpoint& checkpoint = *stored_checkpoint_;
    const std::uint64_t tensors = checkpoint.catalog().tensors.size();
    if (tensors * static_cast<std::uint64_t>(ranks_) > kWishesMax) {
      throw Error(Code::kUsage, with_commas(tensors) + " tensors on " +
                                    with_commas(static_cast<std::uint64_t>(ranks_)) +
                                    " ranks are more than the " + with_commas(kWishesMax) +
                                    " requests that can be planned; take fewer ranks");
    }
    const auto states = states_of(checkpoint.catalog(), static_cast<std::int32_t>(ranks_));
    rows_.push_back({"load", plan_load(states, checkpoint.catalog())});
  }

  /// Notes what a load would stumble over, as far as names and sizes of files show it.
  void note_damage() {
    NoProgress none;
    const auto report = verify(*stored_.store, stored_.path, PayloadCheck::kSkip, none);
    for (const Finding& finding : report.findings) {
      if (finding.severity != Severity::kError) continue;
      notes_.push_back("the checkpoint is not whole: " + finding.message +
                       (finding.file.empty() ? "" : " [file " + finding.file + "]"));
    }
  }

  void plan_model() {
    if (layout_.empty()) throw Error(Code::kUsage, "--model needs --layout");
    const sim::ModelSpec model = driver::model_of(model_);
    const PlannedSave saved = plan_save(offers_under(model, layout_, "save"));
    rows_.push_back({"save", saved.outcome});
    if (to_.empty()) return;
    rows_.push_back({"load", plan_load(saved.plan, offers_under(model, to_, "load"))});
  }

  void print(const Console& console) const {
    if (json_) {
      nlohmann::json document{{"notes", notes_}};
      for (const Row& row : rows_) document[row.what] = json_of(row.outcome);
      if (load_) load_->add_to(document);
      console.out << json_text(document);
      return;
    }
    Table table({{"plan"},
                 {"ranks", Align::kRight},
                 {"items", Align::kRight},
                 {"mean/rank", Align::kRight},
                 {"most", Align::kRight},
                 {"balance", Align::kRight},
                 {"time to plan", Align::kRight}});
    for (const auto& [what, outcome] : rows_) {
      table.add({what, with_commas(outcome.bytes.size()), with_commas(outcome.items),
                 human_bytes(static_cast<std::uint64_t>(outcome.mean())),
                 human_bytes(outcome.most()), fmt::format("{:.3f}", outcome.balance()),
                 fmt::format("{:.1f} ms", outcome.seconds * 1e3)});
    }
    table.print(console);
    for (const auto& note : notes_) console.out << "note: " << note << '\n';
    if (load_) load_->print(console);
    if (per_rank_) print_ranks(console);
  }

  void print_ranks(const Console& console) const {
    for (const auto& [what, outcome] : rows_) {
      Table table({{what + ": rank"}, {"bytes", Align::kRight}});
      for (std::size_t r = 0; r < outcome.bytes.size(); ++r) {
        if (rank_ >= 0 && std::cmp_not_equal(r, rank_)) continue;
        table.add({std::to_string(r), with_commas(outcome.bytes[r])});
      }
      console.out << '\n';
      table.print(console);
    }
  }

  std::string model_;
  std::string layout_;
  std::string to_;
  std::string checkpoint_;
  std::int64_t ranks_ = 0;
  std::int64_t rank_ = -1;
  std::string host_memory_;
  bool memory_ = false;
  bool files_ = false;
  bool per_rank_ = false;
  bool json_ = false;
  std::vector<Row> rows_;
  std::vector<std::string> notes_;  ///< about idle ranks, and about what could not be told
  StoredPath stored_;
  std::optional<Checkpoint> stored_checkpoint_;
  std::optional<LayoutLoad> load_;  ///< of the checkpoint under a layout
};

}  // namespace

std::unique_ptr<Verb> make_plan() { return std::make_unique<PlanVerb>(); }

}  // namespace reprise::cli
