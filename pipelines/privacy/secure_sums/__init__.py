"""Adds vectors of integers that no server sees: each client sends its vector under masks.

The protocol is that of Bonawitz et al. 2017 ("Practical Secure Aggregation"), against a server that
lies, with the noise of each release drawn in shares. docs/secure_sums.md has it in one picture, what
it protects from, and what it does not cover. Nothing here knows of a network.

refusals       why a run ends without a sum
encoding       fields as bytes that have one reading
terms          what all clients agreed on before the round
roster         who takes part, and by which signing key
signing_key    that key, in a file of its client
keys           fresh key pairs of a round, and what two of them share
masks          standard streams as masks in Z_2^64
shamir         secrets in shares, of which a threshold gives the secret
sealed_shares  shares on their way through the server
messages       what travels: arrays and scalars
memory         what a client keeps between steps
journal        the same on the disk, so that a killed client goes on or refuses
client_steps   what a client checks and answers, step by step
client         one client of one round
server         the server of one round
unmasking      what the server computes from shares
in_process     all clients of a round in one process
noise_shares   the noise that each client adds
trust          epsilon, for each number of clients that collude
"""
