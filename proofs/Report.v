(** * What is printed for others to compare

    What the theorems rest on, and the lists of contexts of sums, differences and products as the certificates have them:
    a character for each slot, a dot where there is nothing, and the token that is right. *)

From Coq Require Import Ascii String.
From Adder Require Import Adder Difference Product.
Open Scope char_scope.

Definition character (t : option token) : ascii :=
  match t with
  | None => "." | Some (Digit d) => ascii_of_nat (48 + value d)
  | Some Minus => "-" | Some Plus => "+" | Some Times => "*" | Some Equals => "=" | Some End => "$"
  end.

Definition line (slots : list (option token)) (right : token) : string :=
  string_of_list_ascii (map character (slots ++ [Some right])).

Definition of_sums : list string :=
  map (fun '(c, t) => line [a_here c; b_here c; written_here c; a_next c; b_next c] t) table.

Definition of_differences : list string :=
  map (fun '(v, t) => line [first_number v; second_number v; below v; sign v; own v] t) difference_table.

Definition of_products : list string :=
  map (fun '(v, t) => line [first_factor v; second_factor v; above v; before v; own_digit v; own_sign v] t)
      page_table.

(** What the last token sees, after every token that is written in one text of each operation: for comparison with what
    the model's program masks. *)

Definition after_each (show : text -> list ascii) (question answer : text) : list string :=
  map (fun n => string_of_list_ascii (show (question ++ firstn n answer))) (seq 0 (S (List.length answer))).

Definition letter (n : nat) : ascii := ascii_of_nat (97 + n).

Definition seen_in_sum : list string :=
  let x := digits 9087 in
  let y := digits 954 in
  after_each (fun t => flat_map (fun '(n, d, t) => [letter (2 * n + d); character (Some t)]) (visible t))
             (prefix x y []) (map Digit (sum_by_columns x y)).

Definition slot_letter (s : slot_name) : ascii :=
  letter match s with FirstNumber => 0 | SecondNumber => 1 | Below => 2 | Sign => 3 | Own => 4 end.

Definition seen_in_difference : list string :=
  let x := digits 318 in
  let y := digits 4260 in
  after_each (fun t => flat_map (fun '(s, t) => [slot_letter s; character (Some t)]) (visible_in_slots t))
             (difference_prefix x y [])
             (map Digit (map (row x y) (seq 0 4)) ++
              Equals :: sign_token (minus_of x y) :: map Digit (map (result x y) (seq 0 4))).

Definition page_letter (s : page_slot) : ascii :=
  letter match s with FirstFactor => 0 | SecondFactor => 1 | Above => 2 | Before => 3 | OwnDigit => 4 | OwnSign => 5 end.

Definition seen_in_product : list string :=
  let x := digits 512 in
  let y := digits 439 in
  after_each (fun t => flat_map (fun '(s, t) => [page_letter s; character (Some t)]) (visible_on_page t))
             (page x y [] []) (flat_map ended (map (row_at x y) (seq 0 3))).

Print Assumptions adds_all_numbers.
Print Assumptions adds_if_masked.
Print Assumptions visible_is_context.
Print Assumptions columns_are_the_reachable.
Print Assumptions table_is_what_occurs.
Print Assumptions one_answer.
Print Assumptions each_once.
Print Assumptions how_many.
Print Assumptions subtracts_all_numbers.
Print Assumptions multiplies_all_numbers.

Set Printing Width 8.
Eval vm_compute in of_sums.
Eval vm_compute in of_differences.
Eval vm_compute in of_products.
Eval vm_compute in seen_in_sum.
Eval vm_compute in seen_in_difference.
Eval vm_compute in seen_in_product.
