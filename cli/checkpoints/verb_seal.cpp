#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/arguments/checkpoint_argument.hpp"
#include "cli/frame/survey_verb.hpp"
#include "cli/output/json_text.hpp"
#include "core/adapters/posix/posix_store.hpp"
#include "core/base/print.hpp"
#include "core/format/integrity.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"
#include "core/seal/seal.hpp"

namespace reprise::cli {
namespace {

class SealVerb final : public SurveyVerb {
 public:
  std::string_view name() const override { return "seal"; }
  std::string_view summary() const override {
    return "Write down what a checkpoint holds, so that any later change is noticed";
  }
  std::string_view examples() const override {
    return "  reprise seal ckpt                       writes ckpt/reprise-seal.json, and nothing "
           "else\n"
           "  reprise verify --sealed ckpt            is every byte as it was?\n"
           "  reprise seal ckpt --out seals/ckpt.json && reprise verify --seal seals/ckpt.json "
           "ckpt\n"
           "A seal has the SHA-256 of each file, and digests of tensors as 'reprise digest' prints "
           "them.\n"
           "Exits with 1 if there is another seal of other content; --force replaces it.\n";
  }
  void declare(Options& options) override {
    options.positional(path_, "CKPT", "directory of a checkpoint, of whatever program")
        .text(out_, "--out", "FILE", "write the seal there, and nothing into CKPT")
        .flag(force_, "--force", "replace a seal of other content");
    declare_survey(options);
  }

  ExitCode run(const Console& console) override {
    const StoredPath stored = stored_path(path_);
    Checkpoint checkpoint = Checkpoint::open_any(*stored.store, stored.path);
    checkpoint.require_sound();
    if (!checkpoint.location().file.empty()) {
      throw Error(Code::kUsage, "a seal is of a directory; name the one that holds this file",
                  {.file = stored.display()});
    }
    const StoredPath place = place_of_seal(stored, checkpoint);
    refuse_within(place, stored.store->display(checkpoint.location().directory));
    const Seal seal =
        survey(console, [&](const SurveyPorts& ports) { return seal_of(checkpoint, ports); });
    const std::optional<Seal> before = seal_at(place);
    const bool same = before && *before == seal;
    const bool refused = before && !same && !force_;
    if (!same && !refused) write_atomically(*place.store, place.path, write_seal(seal));
    tell(seal, place.display(), same ? "already sealed" : refused ? "refused" : "sealed", console);
    if (refused) {
      console.err << "reprise seal: " << place.display()
                  << " is of other content: 'reprise verify --sealed' says what changed; --force "
                     "replaces it\n";
    }
    return refused ? ExitCode::kFail : ExitCode::kPass;
  }

 private:
  StoredPath place_of_seal(const StoredPath& stored, const Checkpoint& checkpoint) const {
    if (!out_.empty()) return stored_path(out_);
    return {std::make_unique<PosixStore>(stored.store->display("")),
            join_path(checkpoint.location().directory, std::string(kSealFile))};
  }

  /// A seal of another name within the checkpoint would be a file that was added later.
  void refuse_within(const StoredPath& place, const std::string& directory) const {
    if (out_.empty()) return;
    const auto inside = std::filesystem::relative(resolved(place.display()), resolved(directory));
    if (inside.empty() || *inside.begin() == "..") return;
    throw Error(Code::kUsage, "--out lies within the checkpoint; without --out the seal does, too",
                {.file = place.display()});
  }

  static std::optional<Seal> seal_at(const StoredPath& place) {
    if (!place.store->stat(place.path)) return std::nullopt;
    return read_seal(read_all(*place.store, place.path, kSealBytesMax), {.file = place.display()});
  }

  void tell(const Seal& seal, const std::string& place, std::string_view what,
            const Console& console) const {
    std::uint64_t bytes = 0;
    for (const SealedFile& file : seal.files) bytes += file.bytes;
    if (json()) {
      console.out << json_text(
          {{"seal", place}, {"result", what}, {"files", seal.files.size()}, {"bytes", bytes}});
    } else {
      console.out << fmt::format("{}: {}, {}, in {}\n", what, counted(seal.files.size(), "file"),
                                 human_bytes(bytes), place);
    }
  }

  std::string path_;
  std::string out_;
  bool force_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_seal() { return std::make_unique<SealVerb>(); }

}  // namespace reprise::cli
