#include "rehearsal/local_network.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace ganymede::rehearsal {
namespace {

namespace fs = std::filesystem;

const std::string kOurs = "ganymede-rehearsal-";
const fs::path kFolder = "/run/netns";

/// Runs a shell's script; returns what it printed, and an empty text if all went well.
std::string fault_of_script(const std::string& script) {
  std::FILE* pipe = ::popen(fmt::format("( set -e\n{}\n) 2>&1", script).c_str(), "r");
  if (pipe == nullptr) return "cannot start a shell";
  std::string printed;
  std::array<char, 4096> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) printed.append(buffer.data(), got);
  const int status = ::pclose(pipe);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  return printed.empty() ? "a command failed without saying why" : printed;
}

/// True if the process that made a name space of ours still runs.
bool is_in_use(const std::string& name) {
  const std::string pid = name.substr(kOurs.size(), name.find('-', kOurs.size()) - kOurs.size());
  std::error_code ignored;
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored),
                 there = fs::read_symlink("/proc/" + pid + "/exe", ignored);
  return !there.empty() && there.filename() == here.filename();
}

std::vector<std::string> name_spaces_from(const std::string& prefix) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(kFolder, ignored))
    if (std::string name = entry.path().filename().string(); name.starts_with(prefix)) names.push_back(std::move(name));
  return names;
}

/// A script that ends the processes in a name space and removes it.
std::string removal_of(const std::string& name) {
  return fmt::format(
      "pids=$(ip netns pids {0}) || pids=\n[ -z \"$pids\" ] || kill -9 $pids || true\nip netns del {0}\n", name);
}

/// The arguments of `tc` for a token bucket. Two packets may leave at once, so that a timer that is late costs no rate.
std::string bucket_of(BytesPerSecond rate, int mtu) {
  constexpr int kHeaders = 52 + 14;  // of a frame: IP, TCP with timestamps, Ethernet
  const int frame = mtu + 14;
  const double bits = rate.si * 8 * frame / (frame - kHeaders);
  return fmt::format("root handle 1: tbf rate {:.0f}bit burst {} limit 16mb", bits, 2 * frame);
}

}  // namespace

std::string why_no_name_spaces() {
  if (::geteuid() != 0) return "not root";
  for (const char* tool : {"ip", "tc"})
    if (std::system(fmt::format("command -v {} >/dev/null 2>&1", tool).c_str()) != 0)
      return fmt::format("no `{}` here (Debian: iproute2)", tool);
  return "";
}

int remove_left_over_name_spaces() {
  int removed = 0;
  for (const std::string& name : name_spaces_from(kOurs))
    if (!is_in_use(name) && fault_of_script(removal_of(name)).empty()) ++removed;
  return removed;
}

NameSpaces::NameSpaces(int hosts, BytesPerSecond rate, Seconds latency, double loss)
    : prefix_(fmt::format("{}{}-", kOurs, ::getpid())),
      hosts_(hosts),
      mtu_(rate.si > 40e6 ? 9000 : 1500),
      own_(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)) {
  const int mtu = mtu_;
  const std::string bucket = bucket_of(rate, mtu);
  std::string script = fmt::format(
      "ip netns add {0}switch\nip -n {0}switch link add bridge type bridge\nip -n {0}switch link set bridge mtu {1} "
      "up\n",
      prefix_, mtu);
  for (int host = 0; host < hosts; ++host)
    script += fmt::format(
        "ip netns add {0}{1}\n"
        "ip -n {0}{1} link add eth0 type veth peer name port{1} netns {0}switch\n"
        "ip -n {0}{1} addr add {2}/16 dev eth0\nip -n {0}{1} link set eth0 mtu {3} up\nip -n {0}{1} link set lo up\n"
        "ip -n {0}switch link set port{1} mtu {3} master bridge up\n"
        "tc -n {0}{1} qdisc add dev eth0 {4}\ntc -n {0}switch qdisc add dev port{1} {4}\n",
        prefix_, host, address_of(host), mtu, bucket);
  if (const std::string fault = fault_of_script(script); !fault.empty()) {
    remove();
    ::close(own_);
    throw Failure("cannot make network namespaces: " + fault);
  }
  std::string delays;
  for (int host = 0; host < hosts; ++host)
    delays += fmt::format(
        "tc -n {}{} qdisc add dev eth0 parent 1:1 handle 10: netem limit 1000000 delay {:.0f}us loss {:.6f}%\n",
        prefix_, host, latency.si * 1e6, 100 * loss);
  has_netem_ = fault_of_script(delays).empty();
}

void NameSpaces::set_rate(BytesPerSecond rate) const {
  std::string script;
  for (int host = 0; host < hosts_; ++host)
    script += fmt::format("tc -n {0}{1} qdisc change dev eth0 {2}\ntc -n {0}switch qdisc change dev port{1} {2}\n",
                          prefix_, host, bucket_of(rate, mtu_));
  if (const std::string fault = fault_of_script(script); !fault.empty())
    throw Failure("cannot change the rate of network namespaces: " + fault);
}

NameSpaces::~NameSpaces() {
  ::setns(own_, CLONE_NEWNET);  // this process must not be in what it removes
  remove();
  ::close(own_);
}

void NameSpaces::remove() const {
  for (const std::string& name : name_spaces_from(prefix_)) fault_of_script(removal_of(name));
}

std::string NameSpaces::name_of(int host) const { return fmt::format("{}{}", prefix_, host); }
std::string NameSpaces::address_of(int host) { return fmt::format("10.0.{}.{}", (host + 1) / 256, (host + 1) % 256); }

void NameSpaces::enter(int host) const {
  const std::string path = (kFolder / name_of(host)).string();
  const int space = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int result = space < 0 ? -1 : ::setns(space, CLONE_NEWNET);
  const int error = errno;
  if (space >= 0) ::close(space);
  if (result != 0) throw Failure(fmt::format("cannot enter {}: {}", path, std::strerror(error)));
}

void NameSpaces::leave() const {
  if (::setns(own_, CLONE_NEWNET) != 0)
    throw Failure(fmt::format("cannot leave a network namespace: {}", std::strerror(errno)));
}

namespace {

volatile std::sig_atomic_t hosts_end_asked = 0;

[[noreturn]] void socket_failure(const char* call) {
  const int error = errno;
  const std::string what = fmt::format("cannot connect two hosts: {}: {}", call, std::strerror(error));
  if (error != EADDRINUSE && error != EADDRNOTAVAIL) throw Failure(what);
  throw ConfigError(what + "; no port is free, and each pair of hosts needs two");
}

int new_socket() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) socket_failure("socket");
  return socket;
}

}  // namespace

HostConnections::HostConnections(const std::vector<int>& hosts, const NameSpaces* spaces)
    : hosts_(hosts), sockets_(hosts.size(), std::vector<int>(hosts.size(), -1)), spaces_(spaces) {
  for (std::size_t a = 0; a < hosts.size(); ++a)
    for (std::size_t b = a + 1; b < hosts.size(); ++b) connect(a, b);
  if (spaces_ != nullptr) spaces_->leave();
}

HostConnections::~HostConnections() {
  for (std::size_t rank = 0; rank < sockets_.size(); ++rank) close_rank(rank);
}

std::vector<int> HostConnections::take(std::size_t rank) {
  const std::vector<int> own = sockets_[rank];
  sockets_[rank].assign(own.size(), -1);
  for (std::size_t other = 0; other < sockets_.size(); ++other) close_rank(other);
  return own;
}

void HostConnections::end(std::size_t rank) {
  for (const int socket : sockets_[rank])
    if (socket >= 0) ::shutdown(socket, SHUT_WR);
}

void HostConnections::close_rank(std::size_t rank) {
  for (int& socket : sockets_[rank])
    if (socket >= 0) ::close(std::exchange(socket, -1));
}

void HostConnections::connect(std::size_t a, std::size_t b) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (spaces_ != nullptr) spaces_->enter(hosts_[a]);
  ::inet_pton(AF_INET, spaces_ != nullptr ? NameSpaces::address_of(hosts_[a]).c_str() : "127.0.0.1", &address.sin_addr);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  const int listening = new_socket();
  socklen_t size = sizeof address;
  if (::bind(listening, generic, size) != 0) socket_failure("bind");
  if (::listen(listening, 1) != 0) socket_failure("listen");
  if (::getsockname(listening, generic, &size) != 0) socket_failure("getsockname");
  if (spaces_ != nullptr) spaces_->enter(hosts_[b]);
  int& from_b = sockets_[b][a] = new_socket();
  if (::connect(from_b, generic, size) != 0) socket_failure("connect");
  int& from_a = sockets_[a][b];
  from_a = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
  if (from_a < 0) socket_failure("accept");
  ::close(listening);
}

pid_t start_process(pid_t leader, const std::function<void()>& work,
                    const std::function<void(const std::string&)>& failed) {
  std::fflush(nullptr);
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid < 0) throw Failure(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (pid > 0) {
    ::setpgid(pid, leader);  // both processes do this, because nobody knows which of them runs first
    return pid;
  }
  ::setpgid(0, leader);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  if (::getppid() != parent) ::_exit(1);
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  int status = 0;
  try {
    work();
  } catch (const std::exception& error) {
    if (failed) failed(error.what());
    status = 1;
  } catch (...) {  // must not unwind into the leader's code, which would then run twice
    status = 1;
  }
  ::_exit(status);
}

std::optional<std::string> how_it_ended(pid_t pid) {
  siginfo_t ended{};
  if (::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid != pid)
    return std::nullopt;
  if (ended.si_code == CLD_EXITED) return fmt::format("exit status {}", ended.si_status);
  return fmt::format("signal {} ({})", ended.si_status, ::strsignal(ended.si_status));
}

void kill_and_bury(pid_t pid, bool whole_group) {
  ::kill(whole_group ? -pid : pid, SIGKILL);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

SharedMemory::SharedMemory(std::size_t bytes)
    : bytes_(bytes),
      memory_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
  if (memory_ == MAP_FAILED) throw Failure("cannot share memory with the processes of a rehearsal");
}

SharedMemory::~SharedMemory() { ::munmap(memory_, bytes_); }

ProcessorTurn::ProcessorTurn(Turn turn) : policy_(::sched_getscheduler(0)) {
  ::sched_getparam(0, &priority_);
  sched_param wanted{};
  if (turn == Turn::before_others) wanted.sched_priority = 1;
  ::sched_setscheduler(0, turn == Turn::before_others ? SCHED_RR : SCHED_OTHER, &wanted);
}

ProcessorTurn::~ProcessorTurn() { ::sched_setscheduler(0, policy_, &priority_); }

EndSignals::EndSignals() {
  hosts_end_asked = 0;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    if (std::signal(signal, [](int) { hosts_end_asked = 1; }) == SIG_IGN && signal == SIGHUP)
      std::signal(signal, SIG_IGN);
}

EndSignals::~EndSignals() {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  if (std::signal(SIGHUP, SIG_DFL) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
}

bool EndSignals::asked() { return hosts_end_asked != 0; }

}  // namespace ganymede::rehearsal
