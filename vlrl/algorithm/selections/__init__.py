"""Which of a step's tokens the policy's loss is for: functions of all tokens of one update, on all ranks.

A selection is given log-probabilities, advantages and entropies of the policy before the update, each [N]
float64 on the host, in any order. It returns

    factors    [N], of each token's policy loss; 0 leaves it out, and it still counts in the averages
    penalties  [N], coefficients of the KL from the policy that generated the token; 0 is none

Tokens that tie are chosen together, so that the choice does not depend on where they are packed.
"""
