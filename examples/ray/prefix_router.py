"""Which replica answers: the one that has answered what begins alike, unless it is much busier than another.

Every router comes to the same choice without asking anybody (rendezvous hashing): of all replicas, the one whose hash together with the
prompt's beginning is highest. When a replica comes or goes, only the prompts that were its own move.
"""

import hashlib

from ray.serve.request_router import RequestRouter

PREFIX = 256  # characters of a prompt that decide
SLACK = 4  # requests that the preferred replica may have more than the idlest


def beginning(asked):
    """What decides: a prompt's first characters; of a conversation, what comes up to the user's first message, for it is the same in all
    its turns."""
    if isinstance(asked.get("prompt"), str):
        return asked["prompt"][:PREFIX]
    said = []
    for message in asked.get("messages", []):
        said.append(str(message.get("content", "")))
        if message.get("role") == "user":
            break
    return "\0".join(said)[:PREFIX]


def preference(start, replica):
    return hashlib.blake2b(f"{replica}\0{start}".encode(), digest_size=8).digest()


def ranked(start, loads, slack=SLACK):
    """Replicas, the best first. `loads`: name -> requests it has now; None where nobody knows."""
    order = sorted(loads, key=lambda replica: preference(start, replica), reverse=True)
    known = [load for load in loads.values() if load is not None]
    if known and (loads[order[0]] or 0) > min(known) + slack:
        order.sort(key=lambda replica: loads[replica] or 0)  # stable: of equally busy ones the preferred
    return order


class PrefixRouter(RequestRouter):
    """Ray Serve asks it for every request."""

    def initialize_state(self, slack=SLACK):
        self.slack = slack

    async def choose_replicas(self, candidate_replicas, pending_request=None):
        if pending_request is None or not pending_request.args:
            return [candidate_replicas]
        replicas = {str(replica.replica_id): replica for replica in candidate_replicas}
        loads = {name: self.replica_queue_len_cache.get(replica.replica_id) for name, replica in replicas.items()}
        return [[replicas[name]] for name in ranked(beginning(pending_request.args[0]), loads, self.slack)]
