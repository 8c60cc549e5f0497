#include "distributed/meeting.h"

#include <map>

#include "core/error.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

using Variables = std::map<std::string, std::string>;

std::optional<Meeting> meeting_by(const Variables& variables, const std::string& rendezvous = "") {
  const auto variable = [&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  return launched_meeting(variable, rendezvous);
}

const Variables by_torchrun{{"RANK", "5"},         {"WORLD_SIZE", "8"},
                            {"LOCAL_RANK", "1"},   {"LOCAL_WORLD_SIZE", "4"},
                            {"MASTER_ADDR", "n0"}, {"MASTER_PORT", "4321"}};
const Variables by_mpirun{{"OMPI_COMM_WORLD_RANK", "1"},
                          {"OMPI_COMM_WORLD_SIZE", "2"},
                          {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
const Variables by_srun{{"SLURM_PROCID", "6"}, {"SLURM_STEP_NUM_TASKS", "7"},        {"SLURM_LOCALID", "2"},
                        {"SLURM_NODEID", "1"}, {"SLURM_STEP_TASKS_PER_NODE", "4,3"}, {"MASTER_ADDR", "node1"}};

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

}  // namespace

TEST_CASE("a process that nobody launched, or one alone, is the only one") {
  CHECK(!meeting_by({}));
  CHECK(!meeting_by({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}}));
}

TEST_CASE("torchrun, mpirun and srun say which process this is, and how many are on its machine") {
  const auto torchrun = meeting_by(by_torchrun);
  REQUIRE(torchrun);
  CHECK(torchrun->rank == 5);
  CHECK(torchrun->size == 8);
  CHECK(torchrun->local_rank == 1);
  CHECK(torchrun->local_size == 4);
  CHECK(torchrun->host == "n0");
  CHECK(torchrun->port == 4321);
  const auto mpirun = meeting_by(by_mpirun);
  REQUIRE(mpirun);
  CHECK(mpirun->host == "127.0.0.1");
  CHECK(mpirun->rank == 1);
  const auto srun = meeting_by(by_srun);
  REQUIRE(srun);
  CHECK(srun->local_size == 3);
  CHECK(srun->host == "node1");
  CHECK(srun->port == 29500);
  CHECK(meeting_by(with(by_srun, {{"SLURM_STEP_TASKS_PER_NODE", "4(x2)"}}))->local_size == 4);
}

TEST_CASE("the option names the place before any variable does") {
  const auto meeting = meeting_by(by_torchrun, "other:99");
  CHECK(meeting->host == "other");
  CHECK(meeting->port == 99);
  CHECK(meeting_by(by_mpirun, "other")->port == 29500);
  CHECK_THROWS_WITH(meeting_by(by_mpirun, "other:x"), "--rendezvous other:x: 'x' is no port; give one from 1 to 65535");
}

TEST_CASE("torchrun that srun has started counts, and other sets of variables must agree") {
  const auto both = with(by_torchrun, by_srun);
  CHECK(meeting_by(with(both, {{"TORCHELASTIC_RUN_ID", "1"}}))->rank == 5);
  CHECK_THROWS_WITH(meeting_by(both),
                    "the variables of torchrun say rank 5 of 8, those of srun rank 6 of 7; unset those of one of them");
  CHECK(meeting_by(with(by_torchrun, {{"SLURM_PROCID", "5"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_LOCALID", "0"}})));
}

TEST_CASE("a batch script of Slurm is alone, and so is what a launcher's process starts") {
  CHECK(!meeting_by({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "0"}}));
  for (const auto& [name, value] : by_torchrun) setenv(name.c_str(), value.c_str(), 1);
  CHECK(launched_rank(environment));
  forget_launcher();
  CHECK(!launched_rank(environment));
}

TEST_CASE("processes that Cloze has started count, whatever has started Cloze") {
  const auto own = with(with(by_torchrun, by_srun), {{"CLOZE_LISTENER", "7"}, {"RANK", "0"}, {"LOCAL_RANK", "0"}});
  const auto meeting = meeting_by(own);
  REQUIRE(meeting);
  CHECK(meeting->launcher == "--processes");
  CHECK(meeting->rank == 0);
  CHECK(meeting->listener == 7);
  CHECK(meeting_by(with(own, {{"RANK", "1"}}))->listener == -1);
}

TEST_CASE("mpirun whose processes srun has started, once a machine, counts") {
  auto once = by_srun;
  once["SLURM_STEP_TASKS_PER_NODE"] = "1(x7)";
  once["SLURM_LOCALID"] = "0";
  CHECK(meeting_by(with(by_mpirun, once))->launcher == "mpirun");
}

TEST_CASE("torchrun serves the store, and says how often it has started all of them again") {
  const auto meeting = meeting_by(with(
      by_torchrun,
      {{"TORCHELASTIC_RUN_ID", "job"}, {"TORCHELASTIC_RESTART_COUNT", "2"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}}));
  CHECK(meeting->has_store);
  CHECK(meeting->restarts == 2);
  CHECK(meeting->id == "job");
  CHECK(!meeting_by(by_torchrun)->has_store);
}

TEST_CASE("half a set of variables and values that are none are refused") {
  CHECK_THROWS_WITH(
      meeting_by({{"RANK", "0"}, {"WORLD_SIZE", "2"}}),
      "RANK is set as by torchrun, and LOCAL_RANK, LOCAL_WORLD_SIZE are not; start the run by torchrun, or "
      "unset it");
  CHECK_THROWS_AS(meeting_by(with(by_torchrun, {{"RANK", "8"}})), ConfigError);
  CHECK_THROWS_WITH(meeting_by(with(by_torchrun, {{"RANK", "-1"}})), Catch::StartsWith("RANK is '-1', which is no"));
  CHECK_THROWS_AS(meeting_by(with(by_torchrun, {{"LOCAL_RANK", "4"}})), ConfigError);
  CHECK_THROWS_WITH(meeting_by(with(by_torchrun, {{"MASTER_PORT", "0"}})), Catch::StartsWith("MASTER_PORT: '0'"));
}

TEST_CASE("where nobody says on which machine rank 0 is, the sentence says how") {
  auto elsewhere = by_srun;
  elsewhere.erase("MASTER_ADDR");
  CHECK_THROWS_WITH(meeting_by(elsewhere), Catch::Contains("export MASTER_ADDR=$(scontrol show hostnames | head -1)"));
  CHECK_THROWS_WITH(meeting_by(with(by_mpirun, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}})),
                    Catch::Contains("--rendezvous HOST:PORT"));
}
