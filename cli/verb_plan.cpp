#include <fmt/format.h>

#include "cli/arguments/checkpoint_argument.hpp"
#include "cli/frame/verb.hpp"
#include "cli/output/table.hpp"
#include "cli/plan/plan_outcome.hpp"
#include "cli/plan/plan_subject.hpp"
#include "core/base/print.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "driver/language/model_file.hpp"

namespace reprise::cli {
namespace {

constexpr std::int64_t kRanksMax = 1 << 16;
/// Upper limit on the number of tensor shares, summed over all ranks. Planning 100 million shares
/// needs a few GB of memory and less than a minute.
constexpr std::uint64_t kSharesMax = 100'000'000;
/// Upper limit on the number of tensors times the number of ranks when planning a load from a
/// stored checkpoint. The states of all ranks are held in memory.
constexpr std::uint64_t kWishesMax = 2000000;

/// Returns one line of JSON. It consists of digits and fixed words, so nothing needs escaping.
std::string json_of(std::string_view what, const PlanOutcome& outcome) {
  return fmt::format(
      R"("{}": {{"balance": {:.6f}, "bytes": [{}], "items": {}, "seconds": {:.6f}}})", what,
      outcome.balance(), join(outcome.bytes, ", "), outcome.items, outcome.seconds);
}

class PlanVerb final : public Verb {
 public:
  std::string_view name() const override { return "plan"; }
  std::string_view summary() const override {
    return "Plan a save, or a load under another layout, without data";
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
           "                                              cut over 64 ranks\n";
  }
  void declare(Options& options) override {
    options
        .text(model_, "--model", "NAME|FILE.yaml", "a model of the simulated job, or a model file")
        .text(layout_, "--layout", "LAYOUT", "the layout that saves: \"tp=2,dp=2\"")
        .text(to_, "--to", "LAYOUT", "the layout that loads")
        .text(checkpoint_, "--ckpt", "CKPT", "plan a load of this checkpoint")
        .number(ranks_, "--ranks", 1, "number of ranks of that load")
        .flag(per_rank_, "--per-rank", "print the bytes of each rank")
        .flag(json_, "--json", "print one JSON document");
  }

  ExitCode run(const Console& console) override {
    if (model_.empty() == checkpoint_.empty()) {
      throw Error(Code::kUsage, "give either --model with --layout, or --ckpt with --ranks");
    }
    if (!checkpoint_.empty() && (!layout_.empty() || !to_.empty())) {
      throw Error(Code::kUsage,
                  "--layout and --to belong to --model; with --ckpt give only --ranks, which cuts "
                  "dimension 0");
    }
    if (!model_.empty() && ranks_ != 0) {
      throw Error(Code::kUsage,
                  "--ranks belongs to --ckpt; with --model, --layout determines the ranks");
    }
    if (!checkpoint_.empty()) {
      plan_checkpoint();
    } else {
      plan_model();
    }
    print(console);
    return ExitCode::kPass;
  }

 private:
  struct Row {
    std::string what;
    PlanOutcome outcome;
  };

  std::vector<LocalPlan> offers_under(const sim::ModelSpec& model, const std::string& text,
                                      const std::string& what) {
    const sim::Layout layout = sim::parse_layout(text);
    if (layout.world_size() > kRanksMax) {
      throw Error(Code::kUsage, "plans are made for up to " + with_commas(kRanksMax) + " ranks; " +
                                    text + " has " +
                                    with_commas(static_cast<std::uint64_t>(layout.world_size())));
    }
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
    if (ranks_ == 0 || ranks_ > kRanksMax) {
      throw Error(Code::kUsage, "--ckpt needs --ranks of 1 to " + std::to_string(kRanksMax));
    }
    const StoredPath stored = stored_path(checkpoint_);
    const Checkpoint checkpoint = Checkpoint::open(*stored.store, stored.path);
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
      std::vector<std::string> parts;
      for (const Row& row : rows_) parts.push_back(json_of(row.what, row.outcome));
      std::vector<std::string> notes;
      for (const auto& note : notes_) notes.push_back('"' + note + '"');
      parts.push_back(R"("notes": [)" + join(notes, ", ") + "]");
      console.out << "{" << join(parts, ", ") << "}\n";
      return;
    }
    Table table({{"plan"},
                 {"ranks", Align::kRight},
                 {"items", Align::kRight},
                 {"mean/rank", Align::kRight},
                 {"most", Align::kRight},
                 {"balance", Align::kRight},
                 {"time", Align::kRight}});
    for (const auto& [what, outcome] : rows_) {
      table.add({what, with_commas(outcome.bytes.size()), with_commas(outcome.items),
                 human_bytes(static_cast<std::uint64_t>(outcome.mean())),
                 human_bytes(outcome.most()), fmt::format("{:.3f}", outcome.balance()),
                 fmt::format("{:.1f} ms", outcome.seconds * 1e3)});
    }
    table.print(console);
    for (const auto& note : notes_) console.out << "note: " << note << '\n';
    if (per_rank_) print_ranks(console);
  }

  void print_ranks(const Console& console) const {
    for (const auto& [what, outcome] : rows_) {
      Table table({{what + ": rank"}, {"bytes", Align::kRight}});
      for (std::size_t r = 0; r < outcome.bytes.size(); ++r) {
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
  bool per_rank_ = false;
  bool json_ = false;
  std::vector<Row> rows_;
  std::vector<std::string> notes_;  ///< notes about ranks that the layouts leave idle
};

}  // namespace

std::unique_ptr<Verb> make_plan() { return std::make_unique<PlanVerb>(); }

}  // namespace reprise::cli
