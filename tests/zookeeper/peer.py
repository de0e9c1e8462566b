#!/usr/bin/python3
"""A ZooKeeper client that is not the gateway's: kazoo, driven by JSON lines.

Each line on stdin is {"do": NAME, ...arguments}; each gets one line on stdout: {"ok": RESULT} or
{"error": CLASS}. The only argument of the program is the connect string.
"""

import json
import logging
import sys
import threading

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock

PATIENCE = 60


def shown(data, stat):
    return {
        "data": data.hex(),
        "owner": stat.ephemeralOwner,
        "version": stat.version,
        "mzxid": stat.mzxid,
    }


class Peer:
    def __init__(self, servers):
        self.client = KazooClient(hosts=servers, timeout=10)
        self.client.start(timeout=PATIENCE)
        self.lock = None

    def tree(self, path):
        """Every node below `path`, as the leader has it; reads of one level are pipelined."""
        self.client.sync(path)
        found, level = {}, [path]
        while level:
            reads = [
                (node, self.client.get_children_async(node), self.client.get_async(node))
                for node in level
            ]
            level = []
            for node, children, data in reads:
                try:
                    names, value = children.get(PATIENCE), data.get(PATIENCE)
                except Exception as error:  # It was deleted meanwhile.
                    if type(error).__name__ != "NoNodeError":
                        raise
                    continue
                if node != path:
                    found[node] = shown(*value)
                level += [f"{node}/{name}" for name in names]
        return found

    def get(self, path):
        self.client.sync(path)
        return self.look(path)

    def look(self, path):
        """What this client's server has, which may be old."""
        return shown(*self.client.get(path))

    def set(self, path, data):
        self.client.set(path, bytes.fromhex(data))

    def create(self, path, data="", ephemeral=False):
        return self.client.create(path, bytes.fromhex(data), ephemeral=ephemeral, makepath=True)

    def delete(self, path):
        self.client.delete(path)

    def end(self, lock, record, data):
        """What a gateway does at the end of an attempt, in one transaction."""
        transaction = self.client.transaction()
        transaction.delete(lock, 0)
        transaction.set_data(record, bytes.fromhex(data))
        return [type(result).__name__ for result in transaction.commit()]

    def gone(self, path):
        """Waits until the node does not exist."""
        event = threading.Event()
        if self.client.exists(path, watch=lambda _: event.set()) and not event.wait(PATIENCE):
            raise TimeoutError

    def acquire(self, path, timeout=PATIENCE):
        """Takes the lock at `path` as a service of another language would."""
        self.lock = Lock(self.client, path, "kazoo", extra_lock_patterns=["-lock-"])
        return self.lock.acquire(timeout=timeout)

    def release(self):
        self.lock.release()


def main():
    logging.disable(logging.CRITICAL)
    peer = Peer(sys.argv[1])
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer = {"ok": getattr(peer, command.pop("do"))(**command)}
        except Exception as error:
            answer = {"error": type(error).__name__}
        print(json.dumps(answer), flush=True)


main()
