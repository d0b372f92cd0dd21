// Trains with our own engine, as a trainer program of one process. The option `wrong` selects a
// deliberate defect.
#include "witness.hpp"

class Training {
 public:
  explicit Training(const std::shared_ptr<Witness>& witness)
      : witness_(*witness),
        wrong_(witness->option("wrong")),
        job_(reprise::local_job(Witness::given("REPRISE_CHECKPOINTS"), {.trace = witness})) {
    const auto whole = reprise::sharded({64}, reprise::Mesh({{"dp", 1}}), {}, job_.rank());
    state_.add("w", whole, w_.data());
    state_.add("m", whole, m_.data());
    if (wrong_ != "lost") state_.add("cursor", whole, cursor_.data());
    for (std::size_t i = 0; i < 64; ++i) w_[i] = m_[i] = 1.0F / static_cast<float>(i + 1);
  }
  void act(const Json& action) {
    const std::string what = action["do"];
    witness_.during(what);
    if (what == "train") train(action["steps"]);
    if (what == "save") save();
    if (what == "load") load(action.value("cold", false), action);
    witness_.during("");
  }
  void tell(const std::string& when) {
    witness_.state(when, step_,
                   {witness_.tensor(when, step_, "w", "float32", w_),
                    witness_.tensor(when, step_, "m", "float32", m_),
                    witness_.tensor(when, step_, "cursor", "int64", cursor_)});
  }

 private:
  void train(int steps) {
    for (; steps > 0; --steps, ++cursor_[0]) {
      for (std::size_t i = 0; i < 64; ++i) w_[i] -= (m_[i] = m_[i] / 2 + w_[i] / 9) / 8;
      witness_.step(++step_, w_[0] + w_[9], cursor_[0]);
    }
  }
  void save() {
    tell("save");
    if (wrong_ == "save") std::swap(w_[3], w_[40]);
    reprise::save(job_, state_, {.directory = "", .step = step_});
    if (wrong_ == "save") std::swap(w_[3], w_[40]);
  }
  void load(bool cold, const Json& action) {
    step_ = cold ? action["step"].get<std::int64_t>()
                 : *reprise::load(job_, state_, {.directory = ""}).step;
    if (wrong_ == "load") w_[5] = w_[6];
    tell("loaded");
    if (wrong_ == "skip") ++cursor_[0];
  }
  Witness& witness_;
  std::string wrong_;
  reprise::Job job_;
  reprise::State state_;
  std::vector<float> w_ = std::vector<float>(64), m_ = w_;
  std::vector<std::int64_t> cursor_ = std::vector<std::int64_t>(64);
  std::int64_t step_ = 0;
};

int main() { return carry_out<Training>(); }
