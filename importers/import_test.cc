// What a problem file may do to us, and what its answer may hold. No torch is needed: a package of the
// same name runs the problem and nothing else.
#include "importers/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "importers/python.h"
#include "sandbox/jail.h"
#include "sandbox/process.h"

namespace assay::importers {
namespace {

using ::testing::HasSubstr;

constexpr const char* kOp =
    R"({"schema": "assay.op/1", "name": "row_sum", "axes": {"n": {"type": "var", "max": 64}},
        "inputs": {"x": {"shape": ["n"], "dtype": "f32"}}, "outputs": {"y": {"shape": ["n"], "dtype": "f32"}},
        "reference": {"source": "reference.cu", "launch": "reference.json"}})";
constexpr const char* kPlan =
    R"({"schema": "assay.launch/1", "kernels": [{"entry": "f", "grid": ["n"], "block": [1], "args": ["x", "y"]}]})";

Json Answer() {
  return {{"files",
           {{"op.json", kOp},
            {"reference.cu", "__global__ void f(const float* x, Out<float>* y) {}"},
            {"reference.json", kPlan},
            {"import.json", R"({"inferred": ["x is positive"]})"}}}};
}

class Hostile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("assay_import_" + std::to_string(::getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "package/assay_import");
    Write("package/assay_import/__init__.py", "");
    Write("package/assay_import/__main__.py",
          "import json, sys\n"
          "request = json.load(open(int(sys.argv[1])))\n"
          "out = open(int(sys.argv[2]), 'w')\n"
          "scope = {'answer': {}}\n"
          "exec(compile(open(request['path']).read(), 'problem.py', 'exec'), scope)\n"
          "json.dump(scope['answer'], out)\n");
    const Path program = sandbox::FindProgram("python3", "/usr/local/bin:/usr/bin:/bin");
    if (program.empty()) GTEST_SKIP() << "no python3 in /usr/bin: apt-get install python3";
    const auto python = DescribePython(program);
    ASSERT_TRUE(python) << ToString(python.error());
    python_ = *python;
    const auto jail = sandbox::ProbeJail();
    ASSERT_TRUE(jail);
    if (!jail->works) GTEST_SKIP() << "no jail on this machine: assay doctor";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const Path& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  Result<Json> Run(const std::string& problem, int seconds = 60) {
    Write("problem.py", problem);
    return RunInJail(python_, folder_ / "problem.py", Json::object(), {},
                     {.time = std::chrono::seconds(seconds), .package = folder_ / "package"});
  }

  Path folder_;
  Python python_;
};

TEST_F(Hostile, AnHonestProblemAnswers) {
  const auto answer = Run("answer['sum'] = sum(range(10))");
  ASSERT_TRUE(answer) << ToString(answer.error());
  EXPECT_EQ((*answer)["sum"], 45);
}

TEST_F(Hostile, SeesNoFilesOfTheHost) {
  const auto answer =
      Run("import os\n"
          "answer['root'] = sorted(os.listdir('/'))\n"
          "answer['seen'] = [p for p in ('/etc/passwd', '/root/.ssh', '/home', '/dev/sda', '/run') "
          "if os.path.exists(p)]\n"
          "answer['variables'] = sorted(os.environ)\n");
  ASSERT_TRUE(answer) << ToString(answer.error());
  EXPECT_EQ((*answer)["seen"], Json::array());
  for (const Json& name : (*answer)["variables"])
    EXPECT_THAT(name.get<std::string>(), ::testing::Not(HasSubstr("KEY")));
}

TEST_F(Hostile, WritesNowhereButItsOwnScratch) {
  const auto answer =
      Run("answer['wrote'] = []\n"
          "for path in ('/problem/problem.py', '/assay/assay_import/__main__.py', '/usr/lib/x', "
          "'/x', '/tmp/x'):\n"
          "    try:\n"
          "        open(path, 'a').write('x')\n"
          "        answer['wrote'].append(path)\n"
          "    except OSError:\n"
          "        pass\n");
  ASSERT_TRUE(answer) << ToString(answer.error());
  EXPECT_EQ((*answer)["wrote"], Json::array({"/tmp/x"}));
}

TEST_F(Hostile, HasNoNetworkAndStartsNoProcesses) {
  const auto answer =
      Run("import os, socket, subprocess\n"
          "def tries(what):\n"
          "    try:\n"
          "        what()\n"
          "        return True\n"
          "    except OSError:\n"
          "        return False\n"
          "answer['socket'] = tries(lambda: socket.socket().connect(('127.0.0.1', 22)))\n"
          "answer['fork'] = tries(lambda: os.fork() or os._exit(0))\n"
          "answer['program'] = tries(lambda: subprocess.run(['/bin/true']))\n");
  ASSERT_TRUE(answer) << ToString(answer.error());
  EXPECT_EQ((*answer)["socket"], false);
  EXPECT_EQ((*answer)["fork"], false);
  EXPECT_EQ((*answer)["program"], false);
}

TEST_F(Hostile, LoopsForEver) {
  const auto answer = Run("while True: pass", 2);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ErrorKind::kLimit);
  EXPECT_THAT(answer.error().message, HasSubstr("within 2 seconds"));
}

TEST_F(Hostile, AllocatesWithoutEnd) {
  const auto answer = Run("kept = [bytearray(1 << 36) for _ in range(1000)]");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ErrorKind::kLimit);
  EXPECT_THAT(answer.error().message, HasSubstr("memory ran out"));
}

TEST_F(Hostile, EndsTheProcess) {
  const auto silent = Run("import os; os._exit(0)");
  ASSERT_FALSE(silent);
  const auto loud = Run("import os; os.write(2, b'so there\\x1b[31m\\n'); os._exit(7)");
  ASSERT_FALSE(loud);
  EXPECT_EQ(loud.error().kind, ErrorKind::kMalformedInput);
  EXPECT_THAT(loud.error().message, HasSubstr("exit 7"));
  EXPECT_EQ(loud.error().message.find('\x1b'), std::string::npos);
}

TEST_F(Hostile, AnswersWithoutEnd) {
  const auto answer =
      Run("import os\n"
          "while True: os.write(4, b'x' * (1 << 20))\n");
  EXPECT_FALSE(answer);
}

TEST(ImportAnswer, HoldsFilesOfKnownNamesAlone) {
  EXPECT_TRUE(ReadAnswer(Answer(), {}));
  for (const char* name :
       {"../evil", "/etc/passwd", "naive/../../x", "op.json/../x", "kernel.cu", ""}) {
    Json answer = Answer();
    answer["files"][name] = "x";
    const auto read = ReadAnswer(answer, {});
    ASSERT_FALSE(read) << name;
    EXPECT_THAT(read.error().message, HasSubstr("which no op has")) << name;
  }
}

TEST(ImportAnswer, IsBoundedAndWellFormed) {
  Json answer = Answer();
  answer["files"]["reference.cu"] = std::string(5u << 20, 'x');
  EXPECT_FALSE(ReadAnswer(answer, {}));
  answer = Answer();
  answer["files"].erase("reference.json");
  EXPECT_FALSE(ReadAnswer(answer, {}));
  answer = Answer();
  answer["files"]["op.json"] = R"({"name": "../evil"})";
  EXPECT_FALSE(ReadAnswer(answer, {}));
  EXPECT_FALSE(ReadAnswer(Json::array(), {}));
  EXPECT_FALSE(ReadAnswer({{"files", 3}}, {}));
}

TEST(ImportAnswer, RefusalsNameTheLineAndTheCure) {
  const Json refused = {{"refused",
                         {{"what", "aten.rand draws random numbers\x1b[2J"},
                          {"cure", "give them as an input"},
                          {"line", 12},
                          {"source", "y = torch.rand(3)"}}}};
  Problem problem;
  problem.source = "model.py";
  const auto read = ReadAnswer(refused, problem);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::kUnsupported);
  EXPECT_EQ(read.error().place, "model.py:12");
  EXPECT_EQ(read.error().cure, "give them as an input");
  EXPECT_THAT(read.error().message, HasSubstr("y = torch.rand(3)"));
  EXPECT_EQ(read.error().message.find('\x1b'), std::string::npos);
}

TEST(ImportProblem, NamesAFunctionOfAFile) {
  EXPECT_FALSE(ParseProblem("torch", "model.py"));
  EXPECT_FALSE(ParseProblem("torch", "model.py:"));
  EXPECT_FALSE(ParseProblem("torch", "/nowhere/model.py:f"));
  EXPECT_FALSE(ParseProblem("torch", std::string(ASSAY_SOURCE_DIR) + "/corpus/torch/rows.py:f g"));
  const auto problem =
      ParseProblem("torch", std::string(ASSAY_SOURCE_DIR) + "/corpus/torch/rows.py:softmax");
  ASSERT_TRUE(problem) << ToString(problem.error());
  EXPECT_EQ(problem->function, "softmax");
  EXPECT_EQ(problem->source.filename(), "rows.py");
}

TEST(ImportWrite, NeverOverwritesAnOpOfAPerson) {
  const Path folder =
      std::filesystem::temp_directory_path() / ("assay_import_write_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "op.json") << "{}";
  const auto imported = ReadAnswer(Answer(), {});
  ASSERT_TRUE(imported);
  const auto refused = WriteOp(*imported, folder);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("was not imported"));
  std::filesystem::remove_all(folder);
  const auto written = WriteOp(*imported, folder);
  EXPECT_TRUE(written) << ToString(written.error());
  EXPECT_TRUE(WriteOp(*imported, folder)) << "an import may be repeated";
  std::filesystem::remove_all(folder);
}

TEST(ImportPython, WithoutTorchSaysHowToGetIt) {
  const auto none = FindPython("/nowhere/python", [](const char*) { return std::string(); });
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().cure, HasSubstr("--python"));
}

}  // namespace
}  // namespace assay::importers
