"""One broker object of the reference system, driven over standard input: a line of JSON asks, a line of JSON answers.

Its arguments are the kind of broker, `redis`, `nats`, `rabbitmq`, `kafka` or `sqs`, and a JSON object with its options. It ends with its standard input.
"""

import asyncio
import json
import sys

from xstate_statemachine.eda import Envelope


class Blocking:
    """A broker that has only an asynchronous form, made to look like the blocking ones."""

    def __init__(self, broker):
        self._broker = broker
        self._loop = asyncio.new_event_loop()

    def _run(self, work):
        return self._loop.run_until_complete(work)

    def publish(self, topic, envelope):
        return self._run(self._broker.publish(topic, envelope))

    def ack(self, delivery):
        return self._run(self._broker.ack(delivery))

    def nack(self, delivery, requeue):
        return self._run(self._broker.nack(delivery, requeue=requeue))

    def subscribe(self, topic, timeout):
        stream = self._broker.subscribe(topic, timeout=timeout)
        try:
            while True:
                try:
                    delivery = self._run(stream.__anext__())
                except StopAsyncIteration:
                    return
                yield delivery
        finally:
            self._run(stream.aclose())


def broker_of(kind, options):
    if kind == "kafka":
        from xstate_statemachine.contrib.brokers.kafka import KafkaBroker

        return Blocking(KafkaBroker(**options))
    if kind == "nats":
        from xstate_statemachine.contrib.brokers.nats import NatsBroker

        return Blocking(NatsBroker(**options))
    if kind == "rabbitmq":
        from xstate_statemachine.contrib.brokers.rabbitmq import RabbitMQBroker

        return Blocking(RabbitMQBroker(**options))
    if kind == "sqs":
        import boto3
        from xstate_statemachine.contrib.brokers.sqs import SyncSqsBroker

        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        client = boto3.client("sqs", endpoint_url=options.pop("endpoint"), region_name="us-east-1", **keys)
        return SyncSqsBroker(client, **options)
    from xstate_statemachine.contrib.brokers.redis_streams import SyncRedisStreamsBroker

    return SyncRedisStreamsBroker(**options)


class Peer:
    def __init__(self, kind, options):
        self.undecodable = []
        self.deliveries = []
        self.broker = broker_of(
            kind, {"on_undecodable": lambda topic, raw, error: self.undecodable.append(str(error)), **options}
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
    peer = Peer(sys.argv[1], json.loads(sys.argv[2]))
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer = {"value": getattr(peer, command.pop("do"))(**command)}
        except Exception as error:  # the test decides what it means
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
