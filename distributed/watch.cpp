#include "distributed/watch.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "core/interrupt.h"
#include "core/log.h"
#include "core/text.h"

namespace cloze {

namespace {

using WatchSeconds = std::chrono::duration<double>;

constexpr int pulse = 300;                                ///< from one sign of life to the next [ms]
constexpr auto late = std::chrono::seconds(10);           ///< from one line about who has not come to the next
constexpr auto farewell = std::chrono::seconds(2);        ///< in which the others hear the last word of this process
constexpr auto asleep = std::chrono::milliseconds(1500);  ///< after which this process itself was stopped for a while

// A message ends with a NUL and consists of lines; an empty one is a sign of life.
constexpr char end_of_message = '\0';
const std::string word_here = "here", word_all = "all", word_failed = "failed", word_left = "left";

/// Sends all of a message; what cannot be sent to a process that has ended is of no use.
void send_message(int socket, const std::string& message, int flags = 0) {
  const auto text = message + end_of_message;
  for (size_t sent = 0; sent < text.size();) {
    const auto count = ::send(socket, text.data() + sent, text.size() - sent, MSG_NOSIGNAL | flags);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    sent += static_cast<size_t>(count);
  }
}

void prepare_socket(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const timeval longest{.tv_sec = 2, .tv_usec = 0};  // for which a message to a frozen process is tried
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest);
  fcntl(socket, F_SETFD, FD_CLOEXEC);
}

/// A connection with a port of a host, or -1.
int connect_to(const std::string& host, int port) {
  addrinfo hints{}, *addresses = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &addresses) != 0) return -1;
  int connected = -1;
  for (const auto* at = addresses; at != nullptr && connected < 0; at = at->ai_next) {
    const int tried = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (tried < 0) continue;
    if (connect(tried, at->ai_addr, at->ai_addrlen) == 0)
      connected = tried;
    else
      close(tried);
  }
  freeaddrinfo(addresses);
  return connected;
}

std::vector<std::string> lines_of_message(const std::string& message) {
  std::vector<std::string> lines;
  std::istringstream in(message);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string message_of(const Failure& failure) {
  return concat(word_failed, "\n", failure.exit_code, "\n", failure.is_of_first, "\n", failure.sentence);
}

/// After the word.
Failure failure_in(const std::string& message) {
  std::istringstream in(message.substr(word_failed.size() + 1));
  Failure failure;
  in >> failure.exit_code >> failure.is_of_first;
  in.ignore(1);
  std::getline(in, failure.sentence, end_of_message);
  return failure;
}

}  // namespace

std::string name_of_host() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::string own_name(int64_t rank) { return concat("rank ", rank, " on ", name_of_host(), " (pid ", getpid(), ")"); }

Listener listen_here(bool is_local) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(is_local ? INADDR_LOOPBACK : INADDR_ANY);
  socklen_t size = sizeof address;
  auto* const place = reinterpret_cast<sockaddr*>(&address);
  Listener made{.socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  const bool listens = made.socket >= 0 && bind(made.socket, place, size) == 0 && listen(made.socket, 4096) == 0 &&
                       getsockname(made.socket, place, &size) == 0;
  require<Error>(listens, "no port can be opened on this machine (", std::strerror(errno),
                 "); let this user open sockets");
  made.port = ntohs(address.sin_port);
  return made;
}

Watch::Watch(const Meeting& meeting, Listener listener)
    : meeting_(meeting), listener_(listener.socket), names_(static_cast<size_t>(meeting.size)) {
  names_[0] = own_name(0);
  is_complete_ = missing().empty();
  begin();
}

Watch::Watch(const Meeting& meeting, int port) : meeting_(meeting), names_(static_cast<size_t>(meeting.size)) {
  names_[0] = concat("rank 0 at ", meeting.host);
  const int line = connect_to(meeting.host, port);
  require<ProcessLost>(line >= 0, "rank 0 does not answer at port ", port, " of ", meeting.host, " (",
                       std::strerror(errno), "); let all ports between the machines of the run pass their firewall");
  prepare_socket(line);
  lines_.push_back({.socket = line, .rank = 0, .heard = Steady::now()});
  send_message(
      line, concat(word_here, "\n", meeting.rank, "\n", meeting.size, "\n", own_name(meeting.rank), "\n", meeting.id));
  begin();
}

Watch::~Watch() {
  const auto sentence = concat(own_name(meeting_.rank), " has ended before the run began");
  fail({.exit_code = ProcessLost("").exit_code(), .sentence = sentence, .is_of_first = is_first()});
  if (thread_.joinable()) thread_.join();
}

void Watch::begin() {
  alarm_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  looked_ = Steady::now();
  thread_ = std::thread([this] { run(); });
}

void Watch::wake() const {
  const uint64_t one = 1;
  [[maybe_unused]] const auto written = write(alarm_, &one, sizeof one);
}

void Watch::run() {
  for (;;) {
    wait_for_words();
    std::optional<Failure> failure;
    {
      const std::lock_guard lock(mutex_);
      if (is_over_) return;
      take_callers();
      failure = listen_to_all();
      is_ending_ = failure.has_value();
      if (failure && is_first()) tell(message_of(*failure));
      if (!failure) show_life();
    }
    if (!failure) continue;
    if (meeting_.end) meeting_.end(*failure);
    return;
  }
}

void Watch::show_life() {
  const auto now = Steady::now();
  if (now - shown_ < std::chrono::milliseconds(pulse)) return;
  shown_ = now;
  tell("");
}

/// Waits until another process says something, until somebody comes, or for a pulse.
void Watch::wait_for_words() {
  std::vector<pollfd> sources{{.fd = alarm_, .events = POLLIN, .revents = 0}};
  {
    const std::lock_guard lock(mutex_);
    if (listener_ >= 0) sources.push_back({.fd = listener_, .events = POLLIN, .revents = 0});
    for (const auto& line : lines_)
      if (line.socket >= 0) sources.push_back({.fd = line.socket, .events = POLLIN, .revents = 0});
  }
  poll(sources.data(), sources.size(), pulse);
}

void Watch::take_callers() {
  pollfd door{.fd = listener_, .events = POLLIN, .revents = 0};
  while (listener_ >= 0 && poll(&door, 1, 0) == 1) {
    const int caller = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (caller < 0) return;
    prepare_socket(caller);
    lines_.push_back({.socket = caller, .heard = Steady::now()});
  }
}

/// What all have said since; and who has been silent for too long.
std::optional<Failure> Watch::listen_to_all() {
  const auto now = Steady::now();
  if (now - looked_ > asleep)
    for (auto& line : lines_) line.heard = now;
  looked_ = now;
  for (size_t i = 0; i < lines_.size(); ++i)
    if (auto failure = listen_to(lines_[i])) return failure;
  std::erase_if(lines_, [](const Line& line) { return line.socket < 0; });
  for (const auto& line : lines_)
    if (line.rank >= 0 && !line.has_left && now - line.heard > WatchSeconds(meeting_.timeout))
      return Failure{.exit_code = ProcessLost("").exit_code(),
                     .sentence = concat(name_of(line.rank), " has not answered for ", meeting_.timeout, " seconds"),
                     .is_of_first = line.rank == 0};
  return std::nullopt;
}

std::optional<Failure> Watch::listen_to(Line& line) {
  char block[4096];
  ssize_t count = 0;
  while (line.socket >= 0 && (count = recv(line.socket, block, sizeof block, MSG_DONTWAIT)) > 0) {
    line.heard = Steady::now();
    line.received.append(block, static_cast<size_t>(count));
    for (size_t end; (end = line.received.find(end_of_message)) != std::string::npos;) {
      const auto message = line.received.substr(0, end);
      line.received.erase(0, end + 1);
      if (auto failure = understand(line, message)) return failure;
    }
  }
  const bool is_open = line.socket < 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
  if (is_open) return std::nullopt;
  close(line.socket);
  line.socket = -1;
  if (line.rank < 0 || line.has_left) return std::nullopt;
  return Failure{.exit_code = ProcessLost("").exit_code(),
                 .sentence = name_of(line.rank) + " has died",
                 .is_of_first = line.rank == 0};
}

std::optional<Failure> Watch::understand(Line& line, const std::string& message) {
  if (message.starts_with(word_failed)) return failure_in(message);
  if (message == word_left) line.has_left = true;
  if (message.starts_with(word_here) && is_first()) take_in(line, message);
  if (message.starts_with(word_all)) {
    names_ = lines_of_message(message);
    names_.erase(names_.begin());
    is_complete_ = true;
    changed_.notify_all();
  }
  return std::nullopt;
}

/// Takes a process in that has come, unless it is one of another run.
void Watch::take_in(Line& line, const std::string& message) {
  auto said = lines_of_message(message);
  said.resize(5);
  const auto place = concat(meeting_.host, ":", meeting_.port);
  const auto rank = std::strtoll(said[1].c_str(), nullptr, 10), size = std::strtoll(said[2].c_str(), nullptr, 10);
  const bool is_of_run = size == meeting_.size && rank > 0 && rank < size && said[4] == meeting_.id;
  if (!is_of_run || !names_[static_cast<size_t>(rank)].empty())
    return refuse(line, concat(place, " is where another run meets, of ", meeting_.size, " processes (",
                               is_of_run ? names_[static_cast<size_t>(rank)] : names_[0],
                               "); give this one a port of its own with --rendezvous HOST:PORT"));
  line.rank = rank;
  names_[static_cast<size_t>(rank)] = said[3];
  if (missing().empty()) begin_together();
}

void Watch::refuse(Line& line, const std::string& reason) const {
  send_message(line.socket, message_of({.exit_code = ConfigError("").exit_code(), .sentence = reason}));
  shutdown(line.socket, SHUT_WR);
}

void Watch::begin_together() {
  std::string message = word_all;
  for (const auto& name : names_) message += "\n" + name;
  tell(message);
  is_complete_ = true;
  changed_.notify_all();
}

std::string Watch::name_of(int64_t rank) const { return names_[static_cast<size_t>(rank)]; }

/// `rank 2`, `ranks 2, 3`, or nothing.
std::string Watch::missing() const {
  std::vector<std::string> ranks;
  for (size_t rank = 0; rank < names_.size(); ++rank)
    if (names_[rank].empty()) ranks.push_back(concat(rank));
  return ranks.empty() ? "" : (ranks.size() == 1 ? "rank " : "ranks ") + listed(ranks);
}

/// Tells all who have come; a sign of life is not waited for.
void Watch::tell(const std::string& message) const {
  for (const auto& line : lines_)
    if (line.socket >= 0 && line.rank >= 0) send_message(line.socket, message, message.empty() ? MSG_DONTWAIT : 0);
}

std::vector<std::string> Watch::await_all() {
  std::unique_lock lock(mutex_);
  const auto start = Steady::now();
  const auto end = start + std::chrono::duration_cast<Steady::duration>(WatchSeconds(meeting_.timeout));
  const auto until = is_first() ? end : end + farewell;  // the first process says who is missing
  for (auto next = start + late; !is_complete_ && !interrupted && Steady::now() < until;) {
    changed_.wait_for(lock, std::chrono::milliseconds(pulse), [&] { return is_complete_; });
    if (Steady::now() < next) continue;
    if (is_first() && !is_complete_) log_info("processes", concat("waiting for ", missing(), " of ", meeting_.size));
    next += late;
  }
  if (is_complete_) return names_;
  if (interrupted) {
    lock.unlock();
    const std::string stopped = "stopped before all processes had come";
    fail({.exit_code = interrupt_code(), .sentence = stopped});
    throw Interrupted(stopped);
  }
  const auto who = missing();
  const auto sentence = concat(who, " of ", meeting_.size, " did not come within ", meeting_.timeout,
                               " seconds; start ", who.starts_with("ranks") ? "them" : "it", ", or raise --timeout");
  lock.unlock();
  if (is_first()) fail({.exit_code = ProcessLost("").exit_code(), .sentence = sentence});
  await_end();
  throw ProcessLost(is_first() ? sentence : "rank 0 has not said that all have come");
}

void Watch::fail(const Failure& failure) {
  {
    const std::lock_guard lock(mutex_);
    if (is_over_ || is_ending_) return;
    tell(message_of(failure));
    is_over_ = true;
  }
  close_gently();
}

void Watch::await_end() {
  const auto until = Steady::now() + 2 * farewell;
  while (Steady::now() < until) {
    {
      const std::lock_guard lock(mutex_);
      if (is_over_) return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void Watch::leave() {
  {
    const std::lock_guard lock(mutex_);
    if (is_over_) return;
    tell(word_left);
    is_over_ = true;
  }
  close_gently();
}

/// Ends the connections when the others have read what was said last: what is closed before is lost with it.
void Watch::close_gently() {
  wake();
  if (thread_.joinable()) thread_.join();
  for (const auto& line : lines_)
    if (line.socket >= 0) shutdown(line.socket, SHUT_WR);
  const auto until = Steady::now() + farewell;
  for (auto& line : lines_) {
    char block[4096];
    pollfd answer{.fd = line.socket, .events = POLLIN, .revents = 0};
    for (bool is_open = line.socket >= 0; is_open && Steady::now() < until;)
      if (poll(&answer, 1, 20) == 1) is_open = recv(line.socket, block, sizeof block, 0) > 0;
    if (line.socket >= 0) close(line.socket);
  }
  lines_.clear();
  if (listener_ >= 0) close(listener_);
  close(alarm_);
}

}  // namespace cloze
