"""Kills the primary of three PostgreSQL servers under Patroni, again and again, below three greenroom servers.

Needs Debian's packages patroni and etcd-server beside PostgreSQL, and runs as root. See docs/cluster.md.

    python3 tests/failover/drill.py target/debug/greenroom --mode synchronous --kills 5

In the synchronous mode nothing that was acknowledged may be lost. In the asynchronous one the replicas are held
back before each kill, so that acknowledged work is lost: every server whose work it was has to notice that. In
both, every server has to take requests again after each kill. Exit code 1 if anything of that is not so.
"""

import argparse
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from pathlib import Path

CLIENTS = 6
# a caller repeats a request with its key for so long
PATIENCE = 90
STORE_LOST = 75
LOST_TEXT = "has lost commits that it had confirmed"
WORKFLOW = """
[[workflows.asking.steps]]
id = "ask"
map = "resume"
suspend = { deadline = "1h" }
"""


def free_port():
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


def say(*words):
    print(f"{time.strftime('%H:%M:%S', time.gmtime())}", *words, flush=True)


def until(what, check, seconds=PATIENCE):
    """Waits until a check returns something; returns that, and the seconds that it took."""
    begin = time.monotonic()
    while True:
        try:
            found = check()
        except (OSError, http.client.HTTPException, subprocess.SubprocessError, ValueError):
            found = None
        if found:
            return found, time.monotonic() - begin
        if time.monotonic() - begin > seconds:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(0.1)


def programs():
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    missing = [name for name in ("patroni", "etcd") if not shutil.which(name)]
    if missing or not found:
        sys.exit(f"not installed: {', '.join(missing + ([] if found else ['postgresql']))}")
    return found[-1].parent


class Replica:
    """A PostgreSQL server with its Patroni."""

    def __init__(self, number, home, bin_dir, etcd, mode):
        self.name, self.home = f"pg{number}", home / f"pg{number}"
        self.port, self.rest = free_port(), free_port()
        self.home.mkdir()
        shutil.chown(self.home, "postgres", "postgres")
        dcs = {
            "ttl": 20, "loop_wait": 2, "retry_timeout": 5,
            # a replica that was held back may become the primary: that is what is tested
            "maximum_lag_on_failover": 1 << 40,
            "master_start_timeout": 0,
            "synchronous_mode": mode == "synchronous",
            "postgresql": {
                "use_pg_rewind": True,
                "parameters": {
                    "max_connections": 120, "shared_buffers": "32MB", "wal_keep_size": "256MB",
                    "max_wal_size": "256MB", "wal_receiver_timeout": "5s", "wal_sender_timeout": "5s",
                    "wal_retrieve_retry_interval": "500ms",
                },
            },
        }
        account = lambda user: {"username": user, "password": "not-a-secret"}
        config = {
            "scope": "drill", "name": self.name, "etcd3": {"host": f"127.0.0.1:{etcd}"},
            "restapi": {"listen": f"127.0.0.1:{self.rest}", "connect_address": f"127.0.0.1:{self.rest}"},
            "bootstrap": {
                "dcs": dcs,
                "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, "data-checksums"],
                "pg_hba": ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust",
                           "local all all trust"],
            },
            "postgresql": {
                "listen": f"127.0.0.1:{self.port}", "connect_address": f"127.0.0.1:{self.port}",
                "data_dir": str(self.home / "data"), "bin_dir": str(bin_dir),
                "pgpass": str(self.home / "pgpass"),
                "authentication": {"superuser": account("postgres"), "replication": account("replicator")},
                "parameters": {"unix_socket_directories": str(self.home)},
            },
        }
        self.config = self.home / "patroni.yml"
        # JSON is YAML
        self.config.write_text(json.dumps(config))
        self.process = None

    def start(self):
        log = open(self.home / "log", "ab")
        command = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "patroni", self.config]
        self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.home, start_new_session=True)

    def role(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.rest}/patroni", timeout=2) as answer:
            state = json.load(answer)
        return state["role"] if state["state"] == "running" else None

    def postgres(self):
        """Returns the processes of PostgreSQL here with their titles; the first one is the postmaster."""
        pids = (self.home / "data" / "postmaster.pid").read_text().split()
        lines = subprocess.run(["ps", "-o", "pid=,ppid=,args=", "-ax"], capture_output=True, text=True, check=True)
        rows = [line.split(None, 2) for line in lines.stdout.splitlines()]
        own = [(int(pid), title) for pid, parent, title in rows if pids[0] in (pid, parent)]
        return sorted(own, key=lambda it: it[0] != int(pids[0]))

    def kill(self, with_patroni):
        if with_patroni:
            self.process.kill()
            self.process.wait()
        # the postmaster is paused first, so that it cannot start others
        own = self.postgres()
        os.kill(own[0][0], signal.SIGSTOP)
        for pid, _ in reversed(self.postgres()):
            os.kill(pid, signal.SIGKILL)

    def hold_replicas(self):
        senders = [pid for pid, title in self.postgres() if "walsender" in title]
        for pid in senders:
            os.kill(pid, signal.SIGSTOP)
        return len(senders)


class Node:
    """A greenroom server, which is started again when it ends with the exit code for that."""

    def __init__(self, program, name, home, url):
        self.name, self.home, self.program = name, home / name, program
        self.home.mkdir()
        self.port, self.ends = free_port(), []
        (self.home / "config.toml").write_text(
            f'[server]\nport = {self.port}\nname = "{name}"\n[store]\nurl = "{url}"\n'
            f'[cluster]\nlisten = "127.0.0.1:{free_port()}"\n{WORKFLOW}'
        )
        self.is_wanted = True
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while self.is_wanted:
            with open(self.home / "log", "ab") as log:
                self.process = subprocess.Popen(
                    [self.program, "serve", "--config", "config.toml"], cwd=self.home, stdout=log, stderr=log)
            code = self.process.wait()
            if self.is_wanted:
                self.ends.append((time.monotonic(), code))
                time.sleep(0.5)

    def stop(self):
        self.is_wanted = False
        self.process.terminate()
        self.thread.join()

    def log(self):
        return (self.home / "log").read_text(errors="replace")

    def request(self, method, path, body=None, key=None, timeout=30):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            headers = {"content-type": "application/json"} | ({"idempotency-key": key} if key else {})
            connection.request(method, path, body and json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


class Clients:
    """Start and resume executions at random servers, and note what was acknowledged."""

    def __init__(self, nodes):
        self.nodes, self.lock = nodes, threading.Lock()
        # id: (what was acknowledged, when)
        self.acknowledged, self.refused, self.gone, self.stuck = {}, {}, 0, []
        self.is_over, self.may_start = False, threading.Event()
        self.may_start.set()
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def repeat(self, path, body, key):
        """Repeats a request until it is answered; returns the status."""
        begin = time.monotonic()
        while True:
            try:
                status, _ = random.choice(self.nodes).request("POST", path, body, key)
            except (OSError, http.client.HTTPException):
                status = "broken"
            if status not in (503, "broken"):
                return status
            with self.lock:
                self.refused[status] = self.refused.get(status, 0) + 1
            if time.monotonic() - begin > PATIENCE:
                return None
            time.sleep(0.2)

    def run(self):
        while not self.is_over:
            self.may_start.wait()
            id = str(uuid.uuid4())
            begin = time.monotonic()
            body = {"input": {}, "options": {"executionId": id}}
            for path, body, word in [
                ("/workflows/asking/execute", body, "suspended"),
                (f"/workflows/asking/executions/{id}/resume", {"resumeData": "yes"}, "completed"),
            ]:
                status = self.repeat(path, body, f"{id}-{word}")
                with self.lock:
                    if status == 200:
                        self.acknowledged[id] = (word, time.monotonic())
                    elif status == 404:
                        # its start was lost: counted below
                        self.gone += 1
                    else:
                        self.stuck.append((id, word, status, time.monotonic() - begin))
                if status != 200:
                    break
            time.sleep(0.02)

    def stop(self):
        self.is_over = True
        self.may_start.set()
        for thread in self.threads:
            thread.join()


def slot_of(id):
    return int(id[-3:], 16)


class Drill:
    def __init__(self, options):
        self.options, self.failures = options, []
        bin_dir = programs()
        self.psql = bin_dir / "psql"
        self.home = Path("/tmp/greenroom-failover")
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir()
        self.home.chmod(0o755)
        client, peer = free_port(), free_port()
        here = f"http://127.0.0.1:{client}"
        self.etcd = subprocess.Popen(
            ["etcd", "--data-dir", self.home / "etcd", "--listen-client-urls", here, "--advertise-client-urls", here,
             "--listen-peer-urls", f"http://127.0.0.1:{peer}", "--unsafe-no-fsync"],
            stdout=subprocess.DEVNULL, stderr=open(self.home / "etcd.log", "wb"))
        until("etcd", lambda: socket.create_connection(("127.0.0.1", client)).close() is None)
        self.replicas = [Replica(n, self.home, bin_dir, client, options.mode) for n in range(3)]
        for replica in self.replicas:
            replica.start()
        until("a primary and two replicas", lambda: self.is_whole(), 180)
        for statement in [
            "CREATE ROLE greenroom LOGIN",
            "CREATE DATABASE greenroom OWNER greenroom ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C.UTF-8' TEMPLATE template0",
        ]:
            self.sql(statement, "postgres", "postgres")
        hosts = ",".join(f"127.0.0.1:{replica.port}" for replica in self.replicas)
        url = f"postgres://greenroom@{hosts}/greenroom?sslmode=disable"
        self.nodes = [Node(os.path.abspath(options.program), name, self.home, url) for name in ("a", "b", "c")]
        for node in self.nodes:
            until(f"{node.name} is ready", lambda: node.request("GET", "/readyz")[0] == 200)

    def primary(self):
        for replica in self.replicas:
            try:
                if replica.role() in ("master", "primary"):
                    return replica
            except OSError:
                pass
        return None

    def is_whole(self):
        """Returns true if there is a primary from which the two others stream, one of them synchronously."""
        primary = self.primary()
        if not primary or sum(replica.role() is not None for replica in self.replicas) < 3:
            return False
        want = "sync_state = 'sync'" if self.options.mode == "synchronous" else "true"
        streams = f"SELECT count(*), count(*) FILTER (WHERE {want}) FROM pg_stat_replication WHERE state = 'streaming'"
        all, wanted = self.sql(streams, "postgres", "postgres").split("|")
        return int(all) == 2 and int(wanted) >= 1

    def sql(self, sql, database="greenroom", user="greenroom"):
        primary = self.primary()
        if not primary:
            raise OSError("no primary")
        address = f"postgres://{user}@127.0.0.1:{primary.port}/{database}"
        said = subprocess.run([self.psql, "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql, address],
                              capture_output=True, text=True, timeout=20)
        if said.returncode:
            raise OSError(said.stderr)
        return said.stdout.strip()

    def fail(self, *words):
        self.failures.append(" ".join(map(str, words)))
        say("FAILED:", *words)

    def executes(self, node):
        """Returns true if a server takes new work. Another one may have to carry it out."""
        id = str(uuid.uuid4())
        body = {"input": {}, "options": {"executionId": id}}
        return node.request("POST", "/workflows/asking/execute", body, timeout=5)[0] == 200

    def lost(self):
        """Returns what was acknowledged, and the ids of which the database has less."""
        # in this order: what is acknowledged is stored
        with self.clients.lock:
            acknowledged = dict(self.clients.acknowledged)
        rows = self.sql("SELECT id, status FROM executions").splitlines()
        stored = dict(row.split("|") for row in rows)
        codes = {code for id, code in stored.items() if acknowledged.get(id, ("",))[0] == "completed"}
        # of those that completed, nearly all are stored as such
        votes = [stored[id] for id in acknowledged if id in stored and acknowledged[id][0] == "completed"]
        completed = max(codes, key=votes.count) if codes else None
        is_lost = lambda id, word: id not in stored or (word == "completed" and stored[id] != completed)
        return acknowledged, [id for id, (word, _) in acknowledged.items() if is_lost(id, word)]

    def noticed(self, losses_before):
        """Returns the servers that have noticed a loss since their logs were counted."""
        return {node.name for node in self.nodes if node.log().count(LOST_TEXT) > losses_before[node.name]}

    def check(self, begin, owners, losses_before):
        """Compares what is stored with what was acknowledged; returns the number of lost executions."""
        acknowledged, lost = self.lost()
        for id in lost:
            with self.clients.lock:
                self.clients.acknowledged.pop(id, None)
        late = [id for id in lost if acknowledged[id][1] > begin + 15]
        if late:
            self.fail(f"{len(late)} executions are lost that were acknowledged after the failover")
        if self.options.mode == "synchronous" and lost:
            self.fail(f"{len(lost)} executions were lost: {lost[:3]}")
        noticed = self.noticed(losses_before)
        whose = {owners.get(slot_of(id)) for id in lost} - {None}
        if whose - noticed:
            self.fail(f"losses of {sorted(whose - noticed)} were not noticed")
        return len(lost), sorted(noticed)

    def round(self, number):
        names = dict(row.split("|") for row in self.sql("SELECT node, name FROM nodes WHERE state < 2").splitlines())
        rows = self.sql("SELECT slot, node FROM slots WHERE node IS NOT NULL").splitlines()
        owners = {int(slot): names.get(node) for slot, node in (row.split("|") for row in rows)}
        losses = {node.name: node.log().count(LOST_TEXT) for node in self.nodes}
        ends = {node.name: len(node.ends) for node in self.nodes}
        primary = self.primary()
        machine = number % 2 == 1
        is_quiet = self.options.mode == "asynchronous" and machine
        if self.options.mode == "asynchronous":
            held = primary.hold_replicas()
            time.sleep(1.5)
            say(f"{primary.name}: {held} replicas held" + (", then no requests" if is_quiet else ""))
        if is_quiet:
            self.clients.may_start.clear()
            time.sleep(1)
        primary.kill(with_patroni=machine)
        begin = time.monotonic()
        say(f"kill {number} of {primary.name}" + (" with its Patroni" if machine else ""))
        until("another primary", lambda: self.primary() not in (None, primary), 120)
        promoted = time.monotonic() - begin
        if is_quiet:
            whose = {owners.get(slot_of(id)) for id in self.lost()[1]} - {None}
            _, seconds = until("servers that write nothing notice", lambda: whose <= self.noticed(losses), 30)
            say(f"losses of {sorted(whose)} were noticed without a write {seconds:.1f} s later")
            self.clients.may_start.set()
        working = []
        for node in self.nodes:
            until(f"{node.name} takes work", lambda: self.executes(node), 120)
            working.append(time.monotonic() - begin)
        if machine:
            primary.start()
        until("three databases", self.is_whole, 180)
        time.sleep(3)
        lost, noticed = self.check(begin, owners, losses)
        codes = {node.name: [code for _, code in node.ends[ends[node.name]:]] for node in self.nodes}
        if any(code != STORE_LOST for them in codes.values() for code in them):
            self.fail(f"a server ended with another code: {codes}")
        ended = {name: them for name, them in codes.items() if them}
        say(f"primary after {promoted:.1f} s; all servers take work after {max(working):.1f} s; "
            f"lost {lost}; noticed by {noticed}; ended {ended}")
        rest = self.options.every - (time.monotonic() - begin)
        time.sleep(max(rest, 0))

    def run(self):
        self.clients = Clients(self.nodes)
        time.sleep(5)
        for number in range(self.options.kills):
            self.round(number)
        self.clients.stop()
        for stuck in self.clients.stuck:
            self.fail("a request was not answered well:", stuck)
        late, _ = self.check(time.monotonic(), {}, {node.name: 0 for node in self.nodes})
        if late:
            self.fail(f"{late} executions are lost at the end")
        unowned = self.sql("SELECT count(*) FROM slots s WHERE NOT EXISTS "
                           "(SELECT FROM nodes n WHERE n.node = s.node AND n.state < 2)")
        running = self.sql("SELECT count(*) FROM executions WHERE status = 0")
        if (unowned, running) != ("0", "0"):
            self.fail(f"{unowned} slots without an owner, {running} executions that still run")
        say(f"{self.options.mode}: {self.options.kills} kills, {len(self.clients.acknowledged)} executions kept, "
            f"{self.clients.gone} resumes of lost ones, refusals {self.clients.refused}, "
            f"{len(self.failures)} failures")

    def end(self):
        for node in getattr(self, "nodes", []):
            node.stop()
        for replica in getattr(self, "replicas", []):
            if replica.process:
                replica.process.terminate()
        for replica in getattr(self, "replicas", []):
            if replica.process:
                replica.process.wait()
        if hasattr(self, "clients"):
            self.clients.is_over = True
        self.etcd.kill()
        self.etcd.wait()
        if not self.options.keep:
            shutil.rmtree(self.home, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--mode", choices=["synchronous", "asynchronous"], default="synchronous")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--every", type=float, default=40, help="seconds between two kills, at least")
    parser.add_argument("--keep", action="store_true", help="keep the data and the logs")
    options = parser.parse_args()
    drill = Drill.__new__(Drill)
    try:
        drill.__init__(options)
        drill.run()
    except TimeoutError as error:
        drill.fail(error)
    finally:
        drill.end()
    sys.exit(1 if drill.failures else 0)


if __name__ == "__main__":
    main()
