"""One broker object of the reference system, driven over standard input: a line of JSON asks, a line of JSON answers.

Its only argument is a JSON object with the options of the broker. It ends with its standard input.
"""

import json
import sys

from xstate_statemachine.contrib.brokers.redis_streams import SyncRedisStreamsBroker
from xstate_statemachine.eda import Envelope


class Peer:
    def __init__(self, options):
        self.undecodable = []
        self.deliveries = []
        self.broker = SyncRedisStreamsBroker(
            on_undecodable=lambda topic, raw, error: self.undecodable.append(str(error)), **options
        )

    def publish(self, topic, envelopes):
        """Publishes new envelopes; answers them as they stand on the wire."""
        sent = []
        for attributes in envelopes:
            attempt = attributes.pop("attempt", None)
            envelope = Envelope.new(**attributes)
            if attempt is not None:
                envelope = envelope.with_attempt(attempt)
            self.broker.publish(topic, envelope)
            sent.append(envelope.to_dict())
        return sent

    def forward(self, topic, n):
        """Publishes the envelope of a delivery once more, with the attempt it was stamped with."""
        self.broker.publish(topic, self.deliveries[n].envelope)

    def take(self, topic, most, idle):
        """Up to `most` deliveries, unsettled; fewer when nothing arrived for `idle` seconds."""
        taken = []
        if most > 0:
            for delivery in self.broker.subscribe(topic, timeout=idle):
                self.deliveries.append(delivery)
                envelope = delivery.envelope
                taken.append({"n": len(self.deliveries) - 1, "attempt": envelope.attempt, "envelope": envelope.to_dict()})
                if len(taken) == most:
                    break
        return taken

    def ack(self, ns):
        for n in ns:
            self.broker.ack(self.deliveries[n])

    def nack(self, ns, requeue):
        """Last first, as the contract asks of a consumer that gives back several of one subject."""
        for n in reversed(ns):
            self.broker.nack(self.deliveries[n], requeue=requeue)

    def drain(self, topic, most, idle):
        """As `take`, each one acknowledged as it comes."""
        taken = []
        while len(taken) < most:
            some = self.take(topic, 1, idle)
            if not some:
                break
            self.ack([some[0]["n"]])
            taken.extend(some)
        return taken

    def refused(self):
        """Why messages were dropped as undecodable."""
        return self.undecodable


def main():
    peer = Peer(json.loads(sys.argv[1]))
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer = {"value": getattr(peer, command.pop("do"))(**command)}
        except Exception as error:  # the test decides what it means
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
