#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/arguments/checkpoint_argument.hpp"
#include "cli/frame/survey_verb.hpp"
#include "cli/keys/key_filter.hpp"
#include "cli/output/json_text.hpp"
#include "cli/output/table.hpp"
#include "core/base/hash.hpp"
#include "core/base/natural_order.hpp"
#include "core/seal/content_digest.hpp"

namespace reprise::cli {
namespace {

class DigestVerb final : public SurveyVerb {
 public:
  std::string_view name() const override { return "digest"; }
  std::string_view summary() const override {
    return "Print a digest of each tensor, which no sharding and no format changes";
  }
  std::string_view examples() const override {
    return "  reprise digest ckpt                             key and digest of each tensor\n"
           "  reprise digest --keys '^model\\.' ckpt\n"
           "  reprise digest --json ckpt | jq -r '.tensors[] | \"\\(.key) \\(.digest)\"'\n"
           "A trainer computes the same digests with reprise.torch.digest, and a program in C "
           "with\n"
           "rp_state_digests. Those of the parts of a tensor add up modulo 2^64. docs/trainers.md "
           "has\n"
           "the arithmetic.\n";
  }
  void declare(Options& options) override {
    options.positional(path_, "CKPT", "a checkpoint")
        .texts(keys_, "--keys", "REGEX", "only keys that match")
        .texts(ignored_, "--ignore", "REGEX", "skip keys that match");
    declare_survey(options);
  }

  ExitCode run(const Console& console) override {
    const StoredPath stored = stored_path(path_);
    Checkpoint checkpoint = Checkpoint::open_any(*stored.store, stored.path);
    checkpoint.require_sound();
    const KeyFilter filter(keys_, ignored_);
    std::vector<const StoredTensor*> tensors;
    for (const StoredTensor& tensor : checkpoint.catalog().tensors) {
      if (filter.wants(tensor.key)) tensors.push_back(&tensor);
    }
    std::ranges::stable_sort(tensors, [](const StoredTensor* a, const StoredTensor* b) {
      return in_natural_order(a->key, b->key);
    });
    if (tensors.empty()) {
      console.err << "reprise digest: "
                  << (filter.everything() ? "there are no tensors\n" : "no key matches\n");
      return ExitCode::kInconclusive;
    }
    const ContentDigests digests = survey(console, [&](const SurveyPorts& ports) {
      return content_digests(checkpoint, tensors, ports);
    });
    print(tensors, digests, console);
    bool damaged = false;
    for (const Finding& finding : digests.damage) {
      if (finding.severity != Severity::kError) continue;
      console.err << "reprise digest: " << finding << '\n';
      damaged = true;
    }
    return damaged ? ExitCode::kUnusable : ExitCode::kPass;
  }

 private:
  void print(const std::vector<const StoredTensor*>& tensors, const ContentDigests& digests,
             const Console& console) const {
    Table table({{"tensor"}, {"dtype"}, {"digest"}});
    nlohmann::json list = nlohmann::json::array();
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      const std::string digest = hex(digests.tensors[t].digest);
      const std::string dtype(name_of(tensors[t]->dtype));
      table.add({tensors[t]->key, dtype, digest});
      list.push_back({{"key", tensors[t]->key}, {"dtype", dtype}, {"digest", digest}});
    }
    if (json()) {
      console.out << json_text({{"tensors", list}});
    } else {
      table.print(console);
    }
  }

  std::string path_;
  std::vector<std::string> keys_;
  std::vector<std::string> ignored_;
};

}  // namespace

std::unique_ptr<Verb> make_digest() { return std::make_unique<DigestVerb>(); }

}  // namespace reprise::cli
