(** * What is printed for others to compare

    What the theorems rest on; the lists of contexts of sums, differences and products, for comparison with those that
    the certificates name; what the last token sees, after every token that is written in one text of each operation,
    for comparison with what the model's program masks; and logits of the network, for comparison with that program's.

    An entry is a number, whose hexadecimal digits after the first are a token each: its place in the vocabulary, or 15
    for an empty slot. *)

From Coq Require Import Uint63.
From Adder Require Import Network Adder Difference Product.
Open Scope uint63_scope.

Definition code_of_token (t : option token) : int :=
  match t with
  | Some (Digit d) =>
      match d with d0 => 0 | d1 => 1 | d2 => 2 | d3 => 3 | d4 => 4 | d5 => 5 | d6 => 6 | d7 => 7 | d8 => 8 | d9 => 9 end
  | Some Minus => 10 | Some Plus => 11 | Some Times => 12 | Some Equals => 13 | Some End => 14
  | None => 15
  end.

Definition entry (codes : list int) : int := fold_left (fun n code => 16 * n + code) codes 1.

(** A context, and the token that is right in it. *)
Definition line (slots : list (option token)) (right : token) : int :=
  entry (map code_of_token (slots ++ [Some right])).

Definition of_sums : list int :=
  map (fun '(c, t) => line [a_here c; b_here c; written_here c; a_next c; b_next c] t) table.

Definition of_differences : list int :=
  map (fun '(v, t) => line [first_number v; second_number v; below v; sign v; own v] t) difference_table.

Definition of_products : list int :=
  map (fun '(v, t) => line [first_factor v; second_factor v; above v; before v; own_digit v; own_sign v] t)
      page_table.

(** What is seen after each token: a slot and a token in turn. *)
Definition after_each (seen : text -> list (int * token)) (question answer : text) : list int :=
  let codes := flat_map (fun '(slot, t) => [slot; code_of_token (Some t)]) in
  map (fun n => entry (codes (seen (question ++ firstn n answer)))) (seq 0 (S (length answer))).

(** A key of a sum is known by its number and its distance. *)
Definition slot_of_key (number distance : nat) : int :=
  match number, distance with
  | O, O => 0 | O, _ => 1
  | S O, O => 2 | S O, _ => 3
  | _, O => 4 | _, _ => 5
  end.

Definition seen_in_sum : list int :=
  let x := digits 9087 in
  let y := digits 954 in
  after_each (fun t => map (fun '(n, d, t) => (slot_of_key n d, t)) (visible t))
             (prefix x y []) (map Digit (sum_by_columns x y)).

Definition code_of_slot (s : slot_name) : int :=
  match s with FirstNumber => 0 | SecondNumber => 1 | Below => 2 | Sign => 3 | Own => 4 end.

Definition seen_in_difference : list int :=
  let x := digits 318 in
  let y := digits 4260 in
  after_each (fun t => map (fun '(s, t) => (code_of_slot s, t)) (visible_in_slots t))
             (difference_prefix x y [])
             (map Digit (map (row x y) (seq 0 4)) ++
              Equals :: sign_token (minus_of x y) :: map Digit (map (result x y) (seq 0 4))).

Definition code_of_page_slot (s : page_slot) : int :=
  match s with FirstFactor => 0 | SecondFactor => 1 | Above => 2 | Before => 3 | OwnDigit => 4 | OwnSign => 5 end.

Definition seen_in_product : list int :=
  let x := digits 512 in
  let y := digits 439 in
  after_each (fun t => map (fun '(s, t) => (code_of_page_slot s, t)) (visible_on_page t))
             (page x y [] []) (flat_map ended (map (row_at x y) (seq 0 3))).

(** Every thousandth context of sums, and in it the logits of the vocabulary, rounded down to multiples of 2^-20; with
    rational numbers, and the lower ends of the enclosures as exponentials. *)
Fixpoint every (n skip : nat) {A : Type} (l : list A) : list A :=
  match l, skip with
  | [], _ => []
  | x :: rest, O => x :: every n n rest
  | _ :: rest, S fewer => every n fewer rest
  end.

Definition rounded (q : Qcanon.Qc) : Z :=
  let q := Qcanon.this q in (QArith_base.Qnum q * 2 ^ 20 / Z.pos (QArith_base.Qden q))%Z.

Definition some_logits : list (int * list Z) :=
  map (fun '(c, t) => (line [a_here c; b_here c; written_here c; a_next c; b_next c] t,
                       map rounded (map (context_logit rationals low_near low_sink c) vocabulary)))
      (every 999 0 table).

(** All of them at once: they share most of what they rest on, and to go through that takes long. *)
Definition theorems :=
  (adds_all_numbers, adds_if_masked, visible_is_context, columns_are_the_reachable, table_is_what_occurs,
   one_answer, each_once, how_many, network_is_right, network_adds, ends_are_enclosed, subtracts_all_numbers,
   multiplies_all_numbers).

Print Assumptions theorems.

Eval vm_compute in of_sums.
Eval vm_compute in of_differences.
Eval vm_compute in of_products.
Eval vm_compute in seen_in_sum.
Eval vm_compute in seen_in_difference.
Eval vm_compute in seen_in_product.
Eval vm_compute in some_logits.
