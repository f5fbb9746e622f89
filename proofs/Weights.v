(** * The weights of one network

    Written by [export.py] from the weights of compact-18-s3-settled, a file whose SHA-256 is
    0543d06846099f96ea77c2fb7fa60a64104bb4cffa7d075a14c424166b45d9e2.

    A weight is a float32 number, hence a whole multiple of a power of two: here all are multiples of
    2^-[weight_bits]. Queries and keys are zero in this network, so that the score of a key is [near], by its number
    and its distance, whatever the tokens are. *)

From Adder Require Export Model.
Open Scope Z_scope.

Definition weight_bits : Z := 27.

Definition embedding (t : token) : Z * Z :=
  match t with
  | Digit d0 => (674545664, 132899456)
  | Digit d1 => (681141888, 93380152)
  | Digit d2 => (685424832, 53543700)
  | Digit d3 => (687379968, 13525570)
  | Digit d4 => (687000640, -26538656)
  | Digit d5 => (684288128, -66512756)
  | Digit d6 => (679251648, -106260968)
  | Digit d7 => (671908288, -145648288)
  | Digit d8 => (662283072, -184540816)
  | Digit d9 => (650408576, -222806752)
  | Minus => (0, 0)
  | Plus => (0, 0)
  | Times => (0, 0)
  | Equals => (0, 0)
  | End => (470255552, 1092360320)
  end.

Definition number_embedding (n : nat) : Z * Z :=
  match n with
  | 0%nat => (-681880512, -142104512)
  | 1%nat => (-681880512, -142104512)
  | 2%nat => (-7205490176, -1564163328)
  | _ => (0, 0)
  end.

Definition value_weight : (Z * Z) * (Z * Z) := ((-42005232, 0), (0, -42005232)).

Definition value_bias : Z * Z := (0, 0).

Definition out_weight : (Z * Z) * (Z * Z) := ((134217728000, 0), (0, 134217728000)).

Definition neuron_in : (Z * Z) * (Z * Z) := ((13370132, 104678536), (13370132, 104678536)).

Definition neuron_in_bias : Z * Z := (-559869184, -693340224).

Definition neuron_out : (Z * Z) * (Z * Z) := ((-156607248, 156607248), (-1993204480, 1993204480)).

Definition neuron_out_bias : Z * Z := (0, 0).

Definition unembedding (t : token) : Z * Z :=
  match t with
  | Digit d0 => (1138995200, -17944483840)
  | Digit d1 => (479372800, -13992553472)
  | Digit d2 => (51078400, -10008908800)
  | Digit d3 => (-144435200, -6007095808)
  | Digit d4 => (-106502400, -2000673152)
  | Digit d5 => (164748800, 1996736768)
  | Digit d6 => (668396800, 5971557888)
  | Digit d7 => (1402732800, 9910289408)
  | Digit d8 => (2365254400, 13799542784)
  | Digit d9 => (3552704000, 17626136576)
  | Minus => (68593561600, -4654538752)
  | Plus => (68593561600, -4654538752)
  | Times => (68593561600, -4654538752)
  | Equals => (68593561600, -4654538752)
  | End => (21568006144, -113890574336)
  end.

Definition unembedding_bias (t : token) : Z :=
  match t with
  | Digit d0 => 0
  | Digit d1 => 0
  | Digit d2 => 0
  | Digit d3 => 0
  | Digit d4 => 0
  | Digit d5 => 0
  | Digit d6 => 0
  | Digit d7 => 0
  | Digit d8 => 0
  | Digit d9 => 0
  | Minus => 0
  | Plus => 0
  | Times => 0
  | Equals => 0
  | End => 0
  end.

(** ** Scores, and their exponentials

    Of a key by number and distance, and of the sink. Coq does not use [near] and [sink], but what Python says of
    their exponentials: that they lie between these two multiples of 2^-[exp_bits]. An exponential that is off by a
    part in 65,536 still does. *)

Definition near (number : nat) (distance : nat) : Z :=
  match number, distance with
  | 0%nat, 0%nat => 387472736
  | 0%nat, _ => 77866424
  | 1%nat, 0%nat => 387472736
  | 1%nat, _ => 77866424
  | 2%nat, 0%nat => 0
  | 2%nat, _ => 77866424
  | _, 0%nat => 0
  | _, _ => 0
  end.

Definition sink : Z := 939524096.

Definition exp_bits : Z := 18.

Definition exp_near (number : nat) (distance : nat) : Z * Z :=
  match number, distance with
  | 0%nat, 0%nat => (4702152, 4702296)
  | 0%nat, _ => (468262, 468277)
  | 1%nat, 0%nat => (4702152, 4702296)
  | 1%nat, _ => (468262, 468277)
  | 2%nat, 0%nat => (262139, 262149)
  | 2%nat, _ => (468262, 468277)
  | _, 0%nat => (262139, 262149)
  | _, _ => (262139, 262149)
  end.

Definition exp_sink : Z * Z := (287471416, 287480190).
